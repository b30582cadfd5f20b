// Cast and the instructions that convert as they compute: CastDequant (CastDeq), AddReluCast, SubReluCast, MulCast.
#pragma once
#include "vec_duplicate.h"
#include "vnpu/cast.h"

namespace AscendC {

namespace detail {
// Repeat strides of a count form, in blocks: the wider type takes 8.
template <typename T, typename Other>
constexpr uint16_t packed_repeat() {
  constexpr double own = std::is_same_v<T, int4b_t> ? 0.5 : sizeof(T);
  constexpr double other = std::is_same_v<Other, int4b_t> ? 0.5 : sizeof(Other);
  return static_cast<uint16_t>(own >= other ? 8 : 8 * own / other);
}
}  // namespace detail

template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                         const uint64_t mask[], const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {
  vnpu::cast(dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride),
             src.operand(repeatParams.srcBlkStride, repeatParams.srcRepStride), static_cast<vnpu::Round>(roundMode),
             detail::lanes_of(mask, repeatTime, isSetMask));
}
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                         const uint64_t mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {
  vnpu::cast(dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride),
             src.operand(repeatParams.srcBlkStride, repeatParams.srcRepStride), static_cast<vnpu::Round>(roundMode),
             detail::lanes_of(mask, repeatTime, isSetMask));
}
template <typename T, typename U>
ASCENDC_INLINE void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                         const uint32_t count) {
  if (count == 0) return;
  vnpu::cast(dst.operand(1, detail::packed_repeat<T, U>()), src.operand(1, detail::packed_repeat<U, T>()),
             static_cast<vnpu::Round>(roundMode), detail::lanes_of_count(count));
}

// One scale, offset and sign per lane of a block, for CastDequant with isVecDeq.
struct VdeqInfo {
  VdeqInfo() = default;
  VdeqInfo(const float scale[16], const int16_t offset[16], const bool sign[16]) {
    for (int i = 0; i < 16; i++) {
      vdeqScale[i] = scale[i];
      vdeqOffset[i] = offset[i];
      vdeqSignMode[i] = sign[i];
    }
  }
  float vdeqScale[16] = {};
  int16_t vdeqOffset[16] = {};
  bool vdeqSignMode[16] = {};
};

namespace detail {
// The DEQSCALE word: scale in bits 0..31, offset in bits 37..45, sign in bit 46 (AscendC reference, SetDeqScale).
ASCENDC_INLINE uint64_t dequant_word(float scale, int16_t offset, bool sign) {
  return bits_of(scale) | (static_cast<uint64_t>(offset) & 0x1ff) << 37 | static_cast<uint64_t>(sign) << 46;
}
}  // namespace detail
ASCENDC_INLINE void SetDeqScale(half scale) { vnpu::set_dequant(detail::bits_of(scale)); }
ASCENDC_INLINE void SetDeqScale(float scale, int16_t offset, bool signMode) {
  vnpu::set_dequant(detail::dequant_word(scale, offset, signMode));
}
template <typename T>
ASCENDC_INLINE void SetDeqScale(const LocalTensor<T>& vdeq, const VdeqInfo& vdeqInfo) {
  static_assert(sizeof(T) == 8, "SetDeqScale takes a LocalTensor<uint64_t> of 16 elements");
  for (uint32_t i = 0; i < 16; i++)
    vdeq.SetValue(i, static_cast<T>(detail::dequant_word(vdeqInfo.vdeqScale[i], vdeqInfo.vdeqOffset[i],
                                                         vdeqInfo.vdeqSignMode[i])));
  vnpu::set_dequant(reinterpret_cast<uint64_t>(vdeq.pointer()));
}

#define VNPU_CAST_DEQUANT(NAME)                                                                                  \
  template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>          \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint64_t mask[],          \
                           uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {                          \
    vnpu::cast_dequant(dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride),                        \
                       src.operand(repeatParams.srcBlkStride, repeatParams.srcRepStride), {isVecDeq, halfBlock}, \
                       detail::lanes_of(mask, repeatTime, isSetMask));                                           \
  }                                                                                                              \
  template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>          \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src, const int32_t mask,             \
                           uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {                          \
    vnpu::cast_dequant(dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride),                        \
                       src.operand(repeatParams.srcBlkStride, repeatParams.srcRepStride), {isVecDeq, halfBlock}, \
                       detail::lanes_of(static_cast<uint64_t>(mask), repeatTime, isSetMask));                    \
  }                                                                                                              \
  template <typename T, typename U, bool isVecDeq = true, bool halfBlock = true>                                 \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint32_t count) {         \
    if (count == 0) return;                                                                                      \
    vnpu::cast_dequant(dst.operand(1, sizeof(T) == 1 ? 8 : detail::packed_repeat<T, U>()), src.operand(),        \
                       {isVecDeq, halfBlock}, detail::lanes_of_count(count));                                    \
  }
VNPU_CAST_DEQUANT(CastDequant)
VNPU_CAST_DEQUANT(CastDeq)
#undef VNPU_CAST_DEQUANT

#define VNPU_FUSED_CAST(NAME, OP)                                                                                    \
  template <typename T, typename U, bool isSetMask = true>                                                           \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,        \
                           uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams& p) {                   \
    vnpu::fused_cast(vnpu::FusedCast::OP, dst.operand(p.dstBlkStride, p.dstRepStride),                               \
                     src0.operand(p.src0BlkStride, p.src0RepStride), src1.operand(p.src1BlkStride, p.src1RepStride), \
                     detail::lanes_of(mask, repeatTime, isSetMask), #NAME);                                          \
  }                                                                                                                  \
  template <typename T, typename U, bool isSetMask = true>                                                           \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,        \
                           uint64_t mask[], const uint8_t repeatTime, const BinaryRepeatParams& p) {                 \
    vnpu::fused_cast(vnpu::FusedCast::OP, dst.operand(p.dstBlkStride, p.dstRepStride),                               \
                     src0.operand(p.src0BlkStride, p.src0RepStride), src1.operand(p.src1BlkStride, p.src1RepStride), \
                     detail::lanes_of(mask, repeatTime, isSetMask), #NAME);                                          \
  }                                                                                                                  \
  template <typename T, typename U>                                                                                  \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,        \
                           const uint32_t count) {                                                                   \
    if (count == 0) return;                                                                                          \
    vnpu::fused_cast(vnpu::FusedCast::OP, dst.operand(1, detail::packed_repeat<T, U>()), src0.operand(),             \
                     src1.operand(), detail::lanes_of_count(count), #NAME);                                          \
  }
VNPU_FUSED_CAST(AddReluCast, AddRelu)
VNPU_FUSED_CAST(SubReluCast, SubRelu)
VNPU_FUSED_CAST(MulCast, Mul)
#undef VNPU_FUSED_CAST

}  // namespace AscendC
