// Masks: SetVectorMask, ResetMask, SetMaskCount, SetMaskNorm, and the mask operands of the vector calls.
// AscendC reference, mask operations: in normal mode a mask enables lanes of a repeat, in counter mode it is the number
// of elements of the whole instruction and repeatTime is ignored.
#pragma once
#include "tensor.h"
#include "vnpu/mask.h"

namespace AscendC {

namespace detail {

ASCENDC_INLINE uint64_t low_bits(uint64_t n) { return n >= 64 ? ~0ull : (1ull << n) - 1; }

// An instruction over `count` elements in counter mode; 0 elements do nothing.
ASCENDC_INLINE vnpu::Lanes lanes_of_counter(uint64_t count) {
  vnpu::Lanes l;
  l.count = static_cast<uint32_t>(count);
  l.repeat = count ? 1 : 0;
  return l;
}
// A number of lanes sets as many bits (kernel_utils_base.h, SetMask), which counter mode takes as a number of elements.
ASCENDC_INLINE void check_lanes(uint64_t mask) {
  if (vnpu::counter_mode() && mask > 1)
    vnpu::misuse("SetMaskCount",
                 "a mask that is a number of lanes becomes bits, and those another number of elements in counter mode; "
                 "use the form with mask[], or SetVectorMask and isSetMask = false");
}
// Mask as a number of lanes of a repeat.
ASCENDC_INLINE vnpu::Lanes lanes_of(uint64_t mask, uint8_t repeat, bool set_mask) {
  if (set_mask && vnpu::counter_mode()) {
    check_lanes(mask);
    return lanes_of_counter(mask);
  }
  vnpu::Lanes l;
  l.repeat = repeat;
  l.use_set_mask = !set_mask;
  l.mask[0] = low_bits(mask);
  l.mask[1] = mask <= 64 ? 0 : low_bits(mask - 64);
  return l;
}
// Mask bit by bit; mask[0] is the low half.
ASCENDC_INLINE vnpu::Lanes lanes_of(const uint64_t mask[], uint8_t repeat, bool set_mask) {
  if (set_mask && vnpu::counter_mode()) return lanes_of_counter(mask[0]);
  vnpu::Lanes l;
  l.repeat = repeat;
  l.use_set_mask = !set_mask;
  if (set_mask) {
    l.mask[0] = mask[0];
    l.mask[1] = mask[1];
  }
  return l;
}
// The count form. Without setting the mask it is one repeat under the mask register as it is.
ASCENDC_INLINE vnpu::Lanes lanes_of_count(int64_t count, bool set_mask = true) {
  vnpu::Lanes l;
  l.use_set_mask = !set_mask;
  if (set_mask)
    l.count = static_cast<uint32_t>(count);
  else
    l.repeat = 1;
  return l;
}

}  // namespace detail

template <typename T, MaskMode mode = MaskMode::NORMAL>
ASCENDC_INLINE void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow) {
  vnpu::set_mask(maskHigh, maskLow);
}
template <typename T, MaskMode mode = MaskMode::NORMAL>
ASCENDC_INLINE void SetVectorMask(int32_t len) {
  uint64_t n = len < 0 ? 0 : static_cast<uint64_t>(len);
  if constexpr (mode == MaskMode::COUNTER)
    vnpu::set_mask(0, n);
  else
    vnpu::set_mask(n <= 64 ? 0 : detail::low_bits(n - 64), detail::low_bits(n));
}
ASCENDC_INLINE void ResetMask() { vnpu::reset_mask(); }
ASCENDC_INLINE void SetMaskCount() { vnpu::set_mask_mode(true); }
ASCENDC_INLINE void SetMaskNorm() { vnpu::set_mask_mode(false); }

}  // namespace AscendC

// The instructions below them, which some kernels call directly.
ASCENDC_INLINE void set_vector_mask(uint64_t maskHigh, uint64_t maskLow) { vnpu::set_mask(maskHigh, maskLow); }
ASCENDC_INLINE void set_mask_count() { vnpu::set_mask_mode(true); }
ASCENDC_INLINE void set_mask_norm() { vnpu::set_mask_mode(false); }
