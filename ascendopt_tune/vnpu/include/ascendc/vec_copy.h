// Copy: UB to UB under a mask, with strides.
#pragma once
#include "vec_mask.h"
#include "vnpu/vcopy.h"

namespace AscendC {

struct CopyRepeatParams {
  CopyRepeatParams() = default;
  CopyRepeatParams(const uint16_t dstStrideIn, const uint16_t srcStrideIn, uint16_t dstRepeatSizeIn,
                   uint16_t srcRepeatSizeIn)
      : dstStride(dstStrideIn),
        srcStride(srcStrideIn),
        dstRepeatSize(dstRepeatSizeIn),
        srcRepeatSize(srcRepeatSizeIn) {}
  uint16_t dstStride = DEFAULT_BLK_STRIDE, srcStride = DEFAULT_BLK_STRIDE;
  uint16_t dstRepeatSize = DEFAULT_REPEAT_STRIDE, srcRepeatSize = DEFAULT_REPEAT_STRIDE;
};

namespace detail {
// In counter mode the mask is the number of elements of one repeat; repeatTime stays valid.
ASCENDC_INLINE vnpu::Lanes lanes_of_copy(uint64_t mask, uint8_t repeat, bool set_mask) {
  vnpu::Lanes l = lanes_of(mask, repeat, set_mask);
  l.repeat = repeat;
  return l;
}
ASCENDC_INLINE vnpu::Lanes lanes_of_copy(const uint64_t mask[], uint8_t repeat, bool set_mask) {
  vnpu::Lanes l = lanes_of(mask, repeat, set_mask);
  l.repeat = repeat;
  return l;
}
}  // namespace detail

template <typename T, bool isSetMask = true>
ASCENDC_INLINE void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],
                         const uint8_t repeatTime, const CopyRepeatParams& p) {
  vnpu::vector_copy(dst.operand(p.dstStride, p.dstRepeatSize), src.operand(p.srcStride, p.srcRepeatSize),
                    detail::lanes_of_copy(mask, repeatTime, isSetMask));
}
template <typename T, bool isSetMask = true>
ASCENDC_INLINE void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask,
                         const uint8_t repeatTime, const CopyRepeatParams& p) {
  vnpu::vector_copy(dst.operand(p.dstStride, p.dstRepeatSize), src.operand(p.srcStride, p.srcRepeatSize),
                    detail::lanes_of_copy(mask, repeatTime, isSetMask));
}

}  // namespace AscendC
