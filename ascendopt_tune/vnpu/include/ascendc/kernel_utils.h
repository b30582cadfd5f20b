// What kernels use of the toolkit's inner headers: which core am I, mask helpers, a few instructions by their own name.
#pragma once
#include "data_copy.h"
#include "vec_duplicate.h"
#include "vec_mask.h"
#include "vnpu/adv_compose.h"

// Only vector cores are modelled.
#define ASCEND_IS_AIV constexpr(true)
#define ASCEND_IS_AIC constexpr(false)

namespace AscendC {

constexpr int32_t MIX_TYPE = 0, AIC_TYPE = 1, AIV_TYPE = 2;
constexpr int32_t AIC = AIC_TYPE, AIV = AIV_TYPE;
constexpr int32_t g_coreType = AIV;

template <typename T, typename U>
struct IsSameType : std::is_same<T, U> {};

class AscendCUtils {
 public:
  // The first `len` lanes of a repeat.
  template <typename T, bool isSetMask = true>
  ASCENDC_INLINE static void SetMask(int32_t len) {
    if constexpr (isSetMask) SetVectorMask<T>(len);
  }
  template <typename T, bool isSetMask = true>
  ASCENDC_INLINE static void SetMask(const uint64_t maskHigh, const uint64_t maskLow) {
    if constexpr (isSetMask) vnpu::set_mask(maskHigh, maskLow);
  }
  template <typename T, bool isSetMask = true>
  ASCENDC_INLINE static void SetMaskCount() {
    if constexpr (isSetMask) vnpu::set_mask_mode(true);
  }
  template <typename T, bool isSetMask = true>
  ASCENDC_INLINE static void SetMaskNorm() {
    if constexpr (isSetMask) vnpu::set_mask_mode(false);
  }
  template <bool isSetMask = true>
  ASCENDC_INLINE static void ResetMask() {
    if constexpr (isSetMask) vnpu::reset_mask();
  }
  static int32_t GetC0Count(const int32_t dtypeSize) { return DEFAULT_C0_SIZE / dtypeSize; }
  static int32_t GetBitSize(int32_t byteSize) { return byteSize * 8; }
};

// A tensor over the local memory behind the kernel's buffers.
template <typename T, TPosition pos>
ASCENDC_INLINE bool PopStackBuffer(LocalTensor<T>& popLocal) {
  popLocal.Bind(static_cast<T*>(vnpu::local_rest()), vnpu::local_rest_bytes() / sizeof(T), pos, nullptr);
  return vnpu::local_rest_bytes() > 0;
}

// The forms below the public ones, which some kernels call with addresses.
template <typename T>
ASCENDC_INLINE void DuplicateImpl(T* dst, const T& scalarValue, const int32_t& count) {
  if (count > 0)
    vnpu::duplicate({dst, vnpu::dtype_of<T>(), 1, 8}, detail::bits_of(scalarValue), detail::lanes_of_count(count));
}
template <typename T>
ASCENDC_INLINE void DataCopyUB2GMImpl(T* dst, T* src, const DataCopyParams& params) {
  vnpu::copy_local_to_gm(dst, src, detail::shape_of(params), "DataCopy");
}
template <typename T>
ASCENDC_INLINE void DataCopyGM2UBImpl(T* dst, T* src, const DataCopyParams& params) {
  vnpu::copy_gm_to_local(dst, src, detail::shape_of(params), "DataCopy");
}
template <typename T>
ASCENDC_INLINE void DataCopyPadGm2UBImpl(T* dst, T* src, const DataCopyExtParams& params,
                                         const DataCopyPadExtParams<T>& padParams) {
  vnpu::CopyShape s = detail::shape_of_pad(params, true);
  detail::add_padding<T>(s, padParams, params.dstStride);
  vnpu::copy_gm_to_local(dst, src, s, "DataCopyPad");
}

}  // namespace AscendC

// ---- the instructions some kernels call directly; the mask register says which lanes ----
template <typename T>
ASCENDC_INLINE void vector_dup(T* dst, T value, uint8_t repeat, uint16_t dstBlkStride, uint16_t /*srcBlkStride*/,
                               uint8_t dstRepStride, uint8_t /*srcRepStride*/) {
  vnpu::duplicate({dst, vnpu::dtype_of<T>(), dstBlkStride, dstRepStride}, AscendC::detail::bits_of(value),
                  AscendC::detail::lanes_of(uint64_t(0), repeat, false));
}
template <typename T>
ASCENDC_INLINE void vor(T* dst, T* src0, T* src1, uint8_t repeat, uint8_t dstBlkStride, uint8_t src0BlkStride,
                        uint8_t src1BlkStride, uint8_t dstRepStride, uint8_t src0RepStride, uint8_t src1RepStride) {
  vnpu::binary(vnpu::BinaryOp::Or, {dst, vnpu::dtype_of<T>(), dstBlkStride, dstRepStride},
               {src0, vnpu::dtype_of<T>(), src0BlkStride, src0RepStride},
               {src1, vnpu::dtype_of<T>(), src1BlkStride, src1RepStride},
               AscendC::detail::lanes_of(uint64_t(0), repeat, false), "vor");
}
// Lengths and gaps in 32-byte blocks.
template <typename T>
ASCENDC_INLINE void copy_ubuf_to_ubuf(T* dst, T* src, uint8_t /*sid*/, uint16_t bursts, uint16_t lenBurst,
                                      uint16_t srcGap, uint16_t dstGap) {
  vnpu::copy_local_to_local(dst, src,
                            AscendC::detail::shape_of(AscendC::DataCopyParams(bursts, lenBurst, srcGap, dstGap)),
                            "copy_ubuf_to_ubuf");
}
