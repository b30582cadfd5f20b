// Adds, Muls, Maxs, Mins, LeakyRelu, ShiftLeft, ShiftRight, Axpy: one vector and one scalar source, in the three call
// forms of the AscendC reference.
#pragma once
#include "vec_mask.h"
#include "vnpu/scalar_ops.h"

namespace AscendC {

namespace detail {
template <typename T>
ASCENDC_INLINE void scalar_op(vnpu::ScalarOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar,
                              const vnpu::Lanes& lanes, const UnaryRepeatParams& p, const char* api) {
  vnpu::scalar_op(op, dst.operand(p.dstBlkStride, p.dstRepStride), src.operand(p.srcBlkStride, p.srcRepStride),
                  vnpu::to_scalar(scalar), lanes, api);
}
}  // namespace detail

// The reference has a second set with the scalar's type as a parameter; it serves tensor traits, which are not covered.
// Limit of Adds, Muls, Maxs, Mins, LeakyRelu: not with tensor traits.
#define VNPU_SCALAR(NAME)                                                                                             \
  template <typename T, bool isSetMask = true>                                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,                \
                           uint64_t mask[], const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {        \
    detail::scalar_op(vnpu::ScalarOp::NAME, dst, src, scalarValue, detail::lanes_of(mask, repeatTime, isSetMask),     \
                      repeatParams, #NAME);                                                                           \
  }                                                                                                                   \
  template <typename T, bool isSetMask = true>                                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, uint64_t mask, \
                           const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {                         \
    detail::scalar_op(vnpu::ScalarOp::NAME, dst, src, scalarValue, detail::lanes_of(mask, repeatTime, isSetMask),     \
                      repeatParams, #NAME);                                                                           \
  }                                                                                                                   \
  template <typename T, bool isSetMask = true>                                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,                \
                           const int32_t& count) {                                                                    \
    if (count <= 0) return;                                                                                           \
    detail::scalar_op(vnpu::ScalarOp::NAME, dst, src, scalarValue, detail::lanes_of_count(count, isSetMask),          \
                      UnaryRepeatParams(), #NAME);                                                                    \
  }

VNPU_SCALAR(Adds)
VNPU_SCALAR(Muls)
VNPU_SCALAR(Maxs)
VNPU_SCALAR(Mins)
VNPU_SCALAR(LeakyRelu)
VNPU_SCALAR(ShiftLeft)
#undef VNPU_SCALAR

// ShiftRight: the mask forms can round to nearest (roundEn), halves up.
#define VNPU_SHIFT_RIGHT(MASK)                                                                                       \
  template <typename T, bool isSetMask = true>                                                                       \
  ASCENDC_INLINE void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, MASK,   \
                                 const uint8_t repeatTime, const UnaryRepeatParams& repeatParams,                    \
                                 bool roundEn = false) {                                                             \
    detail::scalar_op(roundEn ? vnpu::ScalarOp::ShiftRightRound : vnpu::ScalarOp::ShiftRight, dst, src, scalarValue, \
                      detail::lanes_of(mask, repeatTime, isSetMask), repeatParams, "ShiftRight");                    \
  }
VNPU_SHIFT_RIGHT(uint64_t mask[])
VNPU_SHIFT_RIGHT(uint64_t mask)
#undef VNPU_SHIFT_RIGHT
template <typename T, bool isSetMask = true>
ASCENDC_INLINE void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,
                               const int32_t& count) {
  if (count <= 0) return;
  detail::scalar_op(vnpu::ScalarOp::ShiftRight, dst, src, scalarValue, detail::lanes_of_count(count, isSetMask),
                    UnaryRepeatParams(), "ShiftRight");
}

// dst = src * scalarValue + dst. T: destination, U: source and scalar.
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, uint64_t mask,
                         const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {
  vnpu::axpy(dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride),
             src.operand(repeatParams.srcBlkStride, repeatParams.srcRepStride), vnpu::to_scalar(scalarValue),
             detail::lanes_of(mask, repeatTime, isSetMask));
}
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, uint64_t mask[],
                         const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {
  vnpu::axpy(dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride),
             src.operand(repeatParams.srcBlkStride, repeatParams.srcRepStride), vnpu::to_scalar(scalarValue),
             detail::lanes_of(mask, repeatTime, isSetMask));
}
template <typename T, typename U>
ASCENDC_INLINE void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue,
                         const int32_t& count) {
  if (count <= 0) return;
  vnpu::axpy(dst.operand(), src.operand(1, 8 * sizeof(U) / sizeof(T)), vnpu::to_scalar(scalarValue),
             detail::lanes_of_count(count));
}
// The advanced API's name for the same, with a temporary buffer that nothing here needs.
template <typename T, typename U, bool isReuseSource = false>
ASCENDC_INLINE void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U scalarValue,
                         const LocalTensor<uint8_t>&, const uint32_t calCount) {
  Axpy<T, U>(dst, src, scalarValue, static_cast<int32_t>(calCount));
}

}  // namespace AscendC
