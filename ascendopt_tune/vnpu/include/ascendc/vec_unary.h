// Exp, Ln, Abs, Reciprocal, Rsqrt, Sqrt, Relu, Not: the three call forms of the AscendC reference (count; mask bits +
// repeats; mask count + repeats).
#pragma once
#include "vec_mask.h"
#include "vnpu/unary.h"

namespace AscendC {

// A count of 0 does nothing.
#define VNPU_UNARY(NAME)                                                                                  \
  template <typename T, bool isSetMask = true>                                                            \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[],         \
                           const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {             \
    vnpu::unary(vnpu::UnaryOp::NAME, dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride),   \
                src.operand(repeatParams.srcBlkStride, repeatParams.srcRepStride),                        \
                detail::lanes_of(mask, repeatTime, isSetMask), #NAME);                                    \
  }                                                                                                       \
  template <typename T, bool isSetMask = true>                                                            \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask,           \
                           const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {             \
    vnpu::unary(vnpu::UnaryOp::NAME, dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride),   \
                src.operand(repeatParams.srcBlkStride, repeatParams.srcRepStride),                        \
                detail::lanes_of(mask, repeatTime, isSetMask), #NAME);                                    \
  }                                                                                                       \
  template <typename T>                                                                                   \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count) {  \
    if (count <= 0) return;                                                                               \
    vnpu::unary(vnpu::UnaryOp::NAME, dst.operand(), src.operand(), detail::lanes_of_count(count), #NAME); \
  }

VNPU_UNARY(Exp)
VNPU_UNARY(Ln)
VNPU_UNARY(Abs)
VNPU_UNARY(Reciprocal)
VNPU_UNARY(Rsqrt)
VNPU_UNARY(Sqrt)
VNPU_UNARY(Relu)
VNPU_UNARY(Not)
#undef VNPU_UNARY

}  // namespace AscendC
