// TransDataTo5HD and Transpose.
#pragma once
#include "tensor.h"
#include "vnpu/transpose.h"

// Address registers of the transposing instructions, as some kernels set them directly.
typedef enum { VA0 = 0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 } ub_addr8_t;

namespace AscendC {

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;

enum class TransposeType : uint8_t {
  TRANSPOSE_TYPE_NONE,
  TRANSPOSE_NZ2ND_0213,
  TRANSPOSE_NZ2NZ_0213,
  TRANSPOSE_NZ2NZ_012_WITH_N,
  TRANSPOSE_NZ2ND_012_WITH_N,
  TRANSPOSE_NZ2ND_012_WITHOUT_N,
  TRANSPOSE_NZ2NZ_012_WITHOUT_N,
  TRANSPOSE_ND2ND_ONLY,
  TRANSPOSE_ND_UB_GM,
  TRANSPOSE_GRAD_ND_UB_GM,
  TRANSPOSE_ND2ND_B16,
  TRANSPOSE_NCHW2NHWC,
  TRANSPOSE_NHWC2NCHW,
};
struct TransDataTo5HDParams {
  constexpr TransDataTo5HDParams() = default;
  constexpr TransDataTo5HDParams(const bool dstHigh, const bool srcHigh, const uint8_t repeats, const uint16_t dstRep,
                                 const uint16_t srcRep)
      : dstHighHalf(dstHigh), srcHighHalf(srcHigh), repeatTimes(repeats), dstRepStride(dstRep), srcRepStride(srcRep) {}
  bool dstHighHalf = false, srcHighHalf = false;
  uint8_t repeatTimes = 1;
  uint16_t dstRepStride = 0, srcRepStride = 0;
};
struct TransposeParamsExt {
  constexpr TransposeParamsExt() = default;
  constexpr TransposeParamsExt(const uint16_t n, const uint16_t c, const uint16_t h, const uint16_t w,
                               const TransposeType type)
      : nSize(n), cSize(c), hSize(h), wSize(w), transposeType(type) {}
  uint16_t nSize = 0, cSize = 0, hSize = 0, wSize = 0;
  TransposeType transposeType = TransposeType::TRANSPOSE_ND2ND_B16;
};

namespace detail {
template <typename T>
ASCENDC_INLINE void transpose_rows(const uint64_t dst[16], const uint64_t src[16], const TransDataTo5HDParams& p) {
  vnpu::RowTranspose t;
  t.dst = dst;
  t.src = src;
  t.dtype = vnpu::dtype_of<T>();
  t.repeat = p.repeatTimes;
  t.dst_rep_stride = p.dstRepStride;
  t.src_rep_stride = p.srcRepStride;
  t.dst_high = p.dstHighHalf;
  t.src_high = p.srcHighHalf;
  vnpu::transpose_rows(t, "TransDataTo5HD");
}
}  // namespace detail

template <typename T>
ASCENDC_INLINE void TransDataTo5HD(uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE],
                                   uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE],
                                   const TransDataTo5HDParams& nchwconvParams) {
  detail::transpose_rows<T>(dstList, srcList, nchwconvParams);
}
template <typename T>
ASCENDC_INLINE void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                                   const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                                   const TransDataTo5HDParams& nchwconvParams) {
  uint64_t dst[NCHW_CONV_ADDR_LIST_SIZE], src[NCHW_CONV_ADDR_LIST_SIZE];
  for (int32_t i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; i++) {
    dst[i] = reinterpret_cast<uint64_t>(dstList[i].pointer());
    src[i] = reinterpret_cast<uint64_t>(srcList[i].pointer());
  }
  detail::transpose_rows<T>(dst, src, nchwconvParams);
}
// The addresses lie in local memory.
template <typename T>
ASCENDC_INLINE void TransDataTo5HD(const LocalTensor<uint64_t>& dst, const LocalTensor<uint64_t>& src,
                                   const TransDataTo5HDParams& nchwconvParams) {
  uint64_t to[NCHW_CONV_ADDR_LIST_SIZE], from[NCHW_CONV_ADDR_LIST_SIZE];
  for (int32_t i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; i++) {
    to[i] = dst.GetValue(i);
    from[i] = src.GetValue(i);
  }
  detail::transpose_rows<T>(to, from, nchwconvParams);
}
// The form below the public ones, which some kernels call.
template <typename T>
ASCENDC_INLINE void TransDataTo5HDImpl(T* dstList[16], T* srcList[16], const TransDataTo5HDParams& nchwconvParams) {
  uint64_t dst[16], src[16];
  for (int32_t i = 0; i < 16; i++) {
    dst[i] = reinterpret_cast<uint64_t>(dstList[i]);
    src[i] = reinterpret_cast<uint64_t>(srcList[i]);
  }
  detail::transpose_rows<T>(dst, src, nchwconvParams);
}
template <typename T>
ASCENDC_INLINE void TransDataTo5HDImpl(uint64_t dstList[16], uint64_t srcList[16],
                                       const TransDataTo5HDParams& nchwconvParams) {
  detail::transpose_rows<T>(dstList, srcList, nchwconvParams);
}

template <typename T>
ASCENDC_INLINE void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src) {
  vnpu::transpose_16x16(dst.pointer(), src.pointer(), vnpu::dtype_of<T>(), "Transpose");
}
template <typename T>
ASCENDC_INLINE void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>& sharedTmpBuffer, const TransposeParamsExt& p) {
  switch (p.transposeType) {
    case TransposeType::TRANSPOSE_TYPE_NONE:
      return;
    case TransposeType::TRANSPOSE_ND2ND_B16:
      if (p.hSize != 16 || p.wSize != 16) vnpu::misuse("Transpose", "TRANSPOSE_ND2ND_B16 needs hSize = wSize = 16");
      return vnpu::transpose_16x16(dst.pointer(), src.pointer(), vnpu::dtype_of<T>(), "Transpose");
    case TransposeType::TRANSPOSE_NCHW2NHWC:
    case TransposeType::TRANSPOSE_NHWC2NCHW:
      return vnpu::transpose_channels(dst.pointer(), src.pointer(), sharedTmpBuffer.pointer(), vnpu::dtype_of<T>(),
                                      p.nSize, p.cSize, uint32_t(p.hSize) * p.wSize,
                                      p.transposeType == TransposeType::TRANSPOSE_NCHW2NHWC);
    default:
      vnpu::unsupported("Transpose", "this transposeType is not supported (AscendC reference, Transpose)");
  }
}

}  // namespace AscendC

// ---- the instructions some kernels call directly ----
ASCENDC_INLINE void set_va_reg_sb(ub_addr8_t index, uint64_t* addresses) {
  vnpu::set_address_register(index, addresses);
}
#define VNPU_SCATTER_VNCHWCONV(NAME, DTYPE)                                                                          \
  ASCENDC_INLINE void NAME(ub_addr8_t dst, ub_addr8_t src, uint8_t repeat, uint16_t dstStride, uint16_t srcStride) { \
    vnpu::transpose_rows_by_register(dst, src, vnpu::DType::DTYPE, repeat, dstStride, srcStride, #NAME);             \
  }
VNPU_SCATTER_VNCHWCONV(scatter_vnchwconv_b16, U16)
VNPU_SCATTER_VNCHWCONV(scatter_vnchwconv_b32, U32)
#undef VNPU_SCATTER_VNCHWCONV
template <typename T>
ASCENDC_INLINE void vtranspose(T* dst, T* src) {
  vnpu::transpose_16x16(dst, src, vnpu::dtype_of<T>(), "vtranspose");
}
