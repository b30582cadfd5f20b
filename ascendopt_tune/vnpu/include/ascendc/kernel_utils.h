// What kernels use of the toolkit's inner headers: which core am I, mask helpers, a few instructions by their own name.
#pragma once
#include <type_traits>

#include "vec_gather.h"
#include "data_copy.h"
#include "vec_duplicate.h"
#include "vec_mask.h"
#include "vnpu/adv_compose.h"

// A pass is for one kind of core: vector cores, unless vnpu_cube_pass.h says otherwise. A mixed kernel takes both.
#define VNPU_CUBE_PASS false
#define ASCEND_IS_AIV constexpr(!VNPU_CUBE_PASS)
#define ASCEND_IS_AIC constexpr(VNPU_CUBE_PASS)

namespace AscendC {

constexpr int32_t MIX_TYPE = 0, AIC_TYPE = 1, AIV_TYPE = 2;
constexpr int32_t AIC = AIC_TYPE, AIV = AIV_TYPE;
constexpr int32_t core_type_of_pass(bool cube) { return cube ? AIC : AIV; }
#define g_coreType core_type_of_pass(VNPU_CUBE_PASS)

// Numbers kernels take from the toolkit's inner headers, under the toolkit's names.
constexpr uint8_t HALF_DEFAULT_REPEAT_STRIDE = 4, ONE_FOURTH_DEFAULT_REPEAT_STRIDE = 2;
constexpr uint64_t FULL_MASK = 0xffffffffffffffff;
constexpr int32_t MAX_REPEAT_TIMES = 255;
constexpr uint8_t B32_BYTE_SIZE = 4, B16_BYTE_SIZE = 2, B8_BYTE_SIZE = 1;
constexpr uint8_t B32_DATA_NUM_PER_BLOCK = 8, B16_DATA_NUM_PER_BLOCK = 16;
constexpr int32_t B32_DATA_NUM_PER_REPEAT = 64, B16_DATA_NUM_PER_REPEAT = 128;
constexpr uint32_t ONE_BLK_HALF_NUM = 16, ONE_BLK_FLOAT_NUM = 8;
constexpr uint32_t BRCB_BROADCAST_NUMBER = 8;
#ifndef VNPU_BLOCK_CUBE  // both sides have it, and some files are for both
#define VNPU_BLOCK_CUBE
constexpr int32_t BLOCK_CUBE = 16;  // rows of a tile
#endif

// Bits of a float. Kernels take the number through the address, and a constant of that has to be one when the kernel is
// compiled: nothing runs when it is loaded.
struct FloatBits {
  uint32_t bits;
  float value;
  constexpr operator uint32_t() const { return bits; }
  constexpr const float* operator&() const { return &value; }
};
constexpr FloatBits F32_INF{0x7f800000, __builtin_inff()}, F32_NEG_INF{0xff800000, -__builtin_inff()};

// Quotient, rounded up (the vector function Ceil takes tensors).
constexpr uint32_t Ceil(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

template <typename T>
struct SizeOfBits {
  static constexpr uint32_t value = vnpu::is_half_byte<T> ? 4 : sizeof(T) * 8;
};
template <typename T, typename U>
struct IsSameType : std::is_same<T, U> {};
template <bool condition, typename T, typename U>
struct Conditional : std::conditional<condition, T, U> {};

using TEventID = int8_t;
constexpr TEventID INVALID_TEVENTID = -1;

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
  // 1: what overflows becomes an infinity, the only mode that is modelled; else it saturates, which the next
  // instruction that computes refuses.
  ASCENDC_INLINE static void SetOverflow(uint64_t ctrlValue) { vnpu::set_saturating(ctrlValue != 1); }
  // Elements that the last GatherMask kept.
  ASCENDC_INLINE static int64_t GetRsvdCnt() { return static_cast<int64_t>(vnpu::gathered()); }
  static int32_t GetC0Count(const int32_t dtypeSize) { return DEFAULT_C0_SIZE / dtypeSize; }
  static int32_t GetBitSize(int32_t byteSize) { return byteSize * 8; }
};

// Keeps CANN's compiler from moving statements past it; no pipe waits. A kernel's own function of that name is taken
// before a template.
template <typename = void>
ASCENDC_INLINE void Barrier() {}

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
template <typename T>
ASCENDC_INLINE void DataCopyPadUB2GMImpl(T* dst, T* src, const DataCopyExtParams& params) {
  vnpu::copy_local_to_gm(dst, src, detail::shape_of_pad(params, false), "DataCopyPad");
}

}  // namespace AscendC

// The special register with the number of this core, of a mixed kernel of its group.
struct BlockIdxRegister {
  ASCENDC_INLINE operator int64_t() const { return vnpu::group_idx(); }
};
constexpr BlockIdxRegister block_idx{};

// ---- the instructions some kernels call directly; the mask register says which lanes ----
template <typename T>
ASCENDC_INLINE void vector_dup(T* dst, std::common_type_t<T> value, uint8_t repeat, uint16_t dstBlkStride,
                               uint16_t /*srcBlkStride*/, uint8_t dstRepStride, uint8_t /*srcRepStride*/) {
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
