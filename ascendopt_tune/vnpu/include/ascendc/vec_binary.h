// Add, Sub, Mul, Div, Max, Min, And, Or and the fused forms with two sources: the three call forms of the AscendC
// reference (whole tensor count; mask bits + repeats; mask count + repeats).
#pragma once
#include "tensor.h"

namespace AscendC {

namespace detail {
// Mask as a number of lanes of a repeat.
ASCENDC_INLINE vnpu::Lanes lanes_of(uint64_t mask, uint8_t repeat, bool set_mask) {
  vnpu::Lanes l;
  l.repeat = repeat;
  l.use_set_mask = !set_mask;
  l.mask[0] = mask >= 64 ? ~0ull : (1ull << mask) - 1;
  l.mask[1] = mask <= 64 ? 0 : mask >= 128 ? ~0ull : (1ull << (mask - 64)) - 1;
  return l;
}
// Mask bit by bit; mask[0] is the low half.
ASCENDC_INLINE vnpu::Lanes lanes_of(const uint64_t mask[], uint8_t repeat, bool set_mask) {
  vnpu::Lanes l;
  l.repeat = repeat;
  l.use_set_mask = !set_mask;
  if (set_mask) {
    l.mask[0] = mask[0];
    l.mask[1] = mask[1];
  }
  return l;
}
ASCENDC_INLINE vnpu::Lanes lanes_of_count(int64_t count) {
  vnpu::Lanes l;
  l.count = static_cast<uint32_t>(count);
  return l;
}
}  // namespace detail

// A count of 0 is a no-op with the cost of the call (theoretical throughput page: 0-count calls are NOPs).
#define VNPU_BINARY(NAME)                                                                                             \
  template <typename T>                                                                                               \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,         \
                           const int32_t& count) {                                                                    \
    if (count <= 0) return;                                                                                           \
    vnpu::binary(vnpu::BinaryOp::NAME, dst.operand(), src0.operand(), src1.operand(), detail::lanes_of_count(count),  \
                 #NAME);                                                                                              \
  }                                                                                                                   \
  template <typename T, bool isSetMask = true>                                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,         \
                           uint64_t mask[], const uint8_t repeatTime, const BinaryRepeatParams& p) {                  \
    vnpu::binary(vnpu::BinaryOp::NAME, dst.operand(p.dstBlkStride, p.dstRepStride),                                   \
                 src0.operand(p.src0BlkStride, p.src0RepStride), src1.operand(p.src1BlkStride, p.src1RepStride),      \
                 detail::lanes_of(mask, repeatTime, isSetMask), #NAME);                                               \
  }                                                                                                                   \
  template <typename T, bool isSetMask = true>                                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,         \
                           uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams& p) {                    \
    vnpu::binary(vnpu::BinaryOp::NAME, dst.operand(p.dstBlkStride, p.dstRepStride),                                   \
                 src0.operand(p.src0BlkStride, p.src0RepStride), src1.operand(p.src1BlkStride, p.src1RepStride),      \
                 detail::lanes_of(mask, repeatTime, isSetMask), #NAME);                                               \
  }

VNPU_BINARY(Add)
VNPU_BINARY(Sub)
VNPU_BINARY(Mul)
VNPU_BINARY(Div)
VNPU_BINARY(Max)
VNPU_BINARY(Min)
VNPU_BINARY(And)
VNPU_BINARY(Or)
VNPU_BINARY(AddRelu)
VNPU_BINARY(SubRelu)
VNPU_BINARY(MulAddDst)
VNPU_BINARY(FusedMulAdd)
VNPU_BINARY(FusedMulAddRelu)
#undef VNPU_BINARY

}  // namespace AscendC
