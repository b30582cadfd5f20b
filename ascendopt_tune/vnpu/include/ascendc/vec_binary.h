// Add, Sub, Mul, Div, Max, Min, And, Or and the fused forms with two sources: the three call forms of the AscendC
// reference (whole tensor count; mask bits + repeats; mask count + repeats).
#pragma once
#include "vec_mask.h"

namespace AscendC {

namespace detail {
template <typename T, typename U>
ASCENDC_INLINE void binary(vnpu::BinaryOp op, const LocalTensor<T>& dst, const LocalTensor<U>& src0,
                           const LocalTensor<U>& src1, const vnpu::Lanes& lanes, const BinaryRepeatParams& p,
                           const char* api) {
  vnpu::binary(op, dst.operand(p.dstBlkStride, p.dstRepStride), src0.operand(p.src0BlkStride, p.src0RepStride),
               src1.operand(p.src1BlkStride, p.src1RepStride), lanes, api);
}
}  // namespace detail

#define VNPU_BINARY_MASKED(NAME, OP)                                                                                 \
  template <typename T, bool isSetMask = true>                                                                       \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,        \
                           uint64_t mask[], const uint8_t repeatTime, const BinaryRepeatParams& repeatParams) {      \
    detail::binary(vnpu::BinaryOp::OP, dst, src0, src1, detail::lanes_of(mask, repeatTime, isSetMask), repeatParams, \
                   #NAME);                                                                                           \
  }                                                                                                                  \
  template <typename T, bool isSetMask = true>                                                                       \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,        \
                           uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams& repeatParams) {        \
    detail::binary(vnpu::BinaryOp::OP, dst, src0, src1, detail::lanes_of(mask, repeatTime, isSetMask), repeatParams, \
                   #NAME);                                                                                           \
  }

// A count of 0 does nothing.
#define VNPU_BINARY(NAME, OP)                                                                                        \
  VNPU_BINARY_MASKED(NAME, OP)                                                                                       \
  template <typename T>                                                                                              \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,        \
                           const int32_t& count) {                                                                   \
    if (count <= 0) return;                                                                                          \
    detail::binary(vnpu::BinaryOp::OP, dst, src0, src1, detail::lanes_of_count(count), BinaryRepeatParams(), #NAME); \
  }

VNPU_BINARY(Add, Add)
VNPU_BINARY(Sub, Sub)
VNPU_BINARY(Mul, Mul)
VNPU_BINARY(Div, Div)
VNPU_BINARY(Max, Max)
VNPU_BINARY(Min, Min)
VNPU_BINARY(AddRelu, AddRelu)
VNPU_BINARY(SubRelu, SubRelu)
VNPU_BINARY(FusedMulAdd, FusedMulAdd)
VNPU_BINARY(MulAddRelu, FusedMulAddRelu)
VNPU_BINARY(FusedMulAddRelu, FusedMulAddRelu)  // the older name of MulAddRelu
#undef VNPU_BINARY

// The count form takes 32-bit integers too, as pairs of 16-bit ones: count is in units of 16 bits.
#define VNPU_BITWISE(NAME)                                                                                       \
  VNPU_BINARY_MASKED(NAME, NAME)                                                                                 \
  template <typename T>                                                                                          \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,    \
                           const int32_t& count) {                                                               \
    if (count <= 0) return;                                                                                      \
    if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, uint32_t>)                                     \
      detail::binary(vnpu::BinaryOp::NAME, dst.template ReinterpretCast<uint16_t>(),                             \
                     src0.template ReinterpretCast<uint16_t>(), src1.template ReinterpretCast<uint16_t>(),       \
                     detail::lanes_of_count(count), BinaryRepeatParams(), #NAME);                                \
    else                                                                                                         \
      detail::binary(vnpu::BinaryOp::NAME, dst, src0, src1, detail::lanes_of_count(count), BinaryRepeatParams(), \
                     #NAME);                                                                                     \
  }
VNPU_BITWISE(And)
VNPU_BITWISE(Or)
#undef VNPU_BITWISE
#undef VNPU_BINARY_MASKED

// dst = src0 * src1 + dst; the destination may be float with half sources.
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,
                              const uint64_t mask[], const uint8_t repeatTime, const BinaryRepeatParams& repeatParams) {
  detail::binary(vnpu::BinaryOp::MulAddDst, dst, src0, src1, detail::lanes_of(mask, repeatTime, isSetMask),
                 repeatParams, "MulAddDst");
}
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,
                              uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams& repeatParams) {
  detail::binary(vnpu::BinaryOp::MulAddDst, dst, src0, src1, detail::lanes_of(mask, repeatTime, isSetMask),
                 repeatParams, "MulAddDst");
}
template <typename T, typename U>
ASCENDC_INLINE void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,
                              const int32_t& count) {
  if (count <= 0) return;
  constexpr uint8_t source = 8 * sizeof(U) / sizeof(T);
  detail::binary(vnpu::BinaryOp::MulAddDst, dst, src0, src1, detail::lanes_of_count(count),
                 BinaryRepeatParams(1, 1, 1, 8, source, source), "MulAddDst");
}

}  // namespace AscendC
