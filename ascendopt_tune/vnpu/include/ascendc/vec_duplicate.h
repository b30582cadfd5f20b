// Duplicate, Brcb, CreateVecIndex, ArithProgression: filling tensors (AscendC reference, data filling).
#pragma once
#include "vec_mask.h"
#include "vnpu/duplicate.h"

namespace AscendC {

struct BrcbRepeatParams {
  BrcbRepeatParams() = default;
  BrcbRepeatParams(uint16_t dstBlk, uint16_t dstRep) : dstRepStride(dstRep), dstBlkStride(dstBlk) {}
  uint32_t blockNumber = DEFAULT_BLK_NUM;
  uint16_t dstRepStride = DEFAULT_REPEAT_STRIDE, dstBlkStride = DEFAULT_BLK_STRIDE;
  bool repeatStrideMode = false, strideSizeMode = false;
};

namespace detail {
template <typename T>
ASCENDC_INLINE uint64_t bits_of(const T& value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
}  // namespace detail

template <typename T, bool isSetMask = true>
ASCENDC_INLINE void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, uint64_t mask, const uint8_t repeatTime,
                              const uint16_t dstBlockStride, const uint8_t dstRepeatStride) {
  vnpu::duplicate(dst.operand(dstBlockStride, dstRepeatStride), detail::bits_of(scalarValue),
                  detail::lanes_of(mask, repeatTime, isSetMask));
}
template <typename T, bool isSetMask = true>
ASCENDC_INLINE void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, uint64_t mask[],
                              const uint8_t repeatTime, const uint16_t dstBlockStride, const uint8_t dstRepeatStride) {
  vnpu::duplicate(dst.operand(dstBlockStride, dstRepeatStride), detail::bits_of(scalarValue),
                  detail::lanes_of(mask, repeatTime, isSetMask));
}
template <typename T>
ASCENDC_INLINE void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const int32_t& count) {
  if (count <= 0) return;
  vnpu::duplicate(dst.operand(), detail::bits_of(scalarValue), detail::lanes_of_count(count));
}

template <typename T>
ASCENDC_INLINE void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint8_t repeatTime,
                         const BrcbRepeatParams& repeatParams) {
  vnpu::brcb(dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride), src.operand(), repeatTime);
}

template <typename T>
ASCENDC_INLINE void CreateVecIndex(LocalTensor<T>& dst, const T& firstValue, uint64_t mask, uint8_t repeatTime,
                                   uint16_t dstBlkStride, uint8_t dstRepStride) {
  vnpu::index_lanes(dst.operand(dstBlkStride, dstRepStride), vnpu::to_scalar(firstValue), mask, repeatTime);
}
template <typename T>
ASCENDC_INLINE void CreateVecIndex(LocalTensor<T>& dst, const T& firstValue, uint64_t mask[], uint8_t repeatTime,
                                   uint16_t dstBlkStride, uint8_t dstRepStride) {
  vnpu::index_masked(dst.operand(dstBlkStride, dstRepStride), vnpu::to_scalar(firstValue), mask, repeatTime);
}
template <typename T>
ASCENDC_INLINE void CreateVecIndex(LocalTensor<T> dst, const T& firstValue, uint32_t count) {
  vnpu::index_elements(dst.operand(), vnpu::to_scalar(firstValue), count);
}
template <typename T>
ASCENDC_INLINE void ArithProgression(const LocalTensor<T>& dst, const T firstValue, const T diffValue,
                                     const int32_t count) {
  if (count <= 0) return;
  vnpu::progression(dst.operand(), vnpu::to_scalar(firstValue), vnpu::to_scalar(diffValue),
                    static_cast<uint32_t>(count));
}
// Its newer name.
template <typename T>
ASCENDC_INLINE void Arange(const LocalTensor<T>& dst, const T firstValue, const T diffValue, const int32_t count) {
  ArithProgression(dst, firstValue, diffValue, count);
}

}  // namespace AscendC
