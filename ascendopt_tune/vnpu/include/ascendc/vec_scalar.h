// Adds, Muls, Maxs, Mins, LeakyRelu, ShiftLeft, ShiftRight, Axpy: one vector and one scalar source, in the three call
// forms of the AscendC reference.
#pragma once
#include "vec_mask.h"
#include "vnpu/scalar_ops.h"

namespace AscendC {

namespace detail {
template <typename T, typename U>
using same_scalar = std::enable_if_t<std::is_same_v<T, U>, bool>;

template <typename T>
ASCENDC_INLINE void scalar_op(vnpu::ScalarOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar,
                              const vnpu::Lanes& lanes, const UnaryRepeatParams& p, const char* api) {
  vnpu::scalar_op(op, dst.operand(p.dstBlkStride, p.dstRepStride), src.operand(p.srcBlkStride, p.srcRepStride),
                  vnpu::to_scalar(scalar), lanes, api);
}
}  // namespace detail

// The forms with a second type parameter exist for a scalar type given explicitly; it must be the tensor's.
#define VNPU_SCALAR(NAME)                                                                                             \
  template <typename T, bool isSetMask = true>                                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,                \
                           uint64_t mask[], const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {        \
    detail::scalar_op(vnpu::ScalarOp::NAME, dst, src, scalarValue, detail::lanes_of(mask, repeatTime, isSetMask),     \
                      repeatParams, #NAME);                                                                           \
  }                                                                                                                   \
  template <typename T, typename U, bool isSetMask = true, detail::same_scalar<T, U> = true>                          \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalarValue,                \
                           uint64_t mask[], const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {        \
    NAME<T, isSetMask>(dst, src, scalarValue, mask, repeatTime, repeatParams);                                        \
  }                                                                                                                   \
  template <typename T, bool isSetMask = true>                                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, uint64_t mask, \
                           const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {                         \
    detail::scalar_op(vnpu::ScalarOp::NAME, dst, src, scalarValue, detail::lanes_of(mask, repeatTime, isSetMask),     \
                      repeatParams, #NAME);                                                                           \
  }                                                                                                                   \
  template <typename T, typename U, bool isSetMask = true, detail::same_scalar<T, U> = true>                          \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalarValue, uint64_t mask, \
                           const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {                         \
    NAME<T, isSetMask>(dst, src, scalarValue, mask, repeatTime, repeatParams);                                        \
  }                                                                                                                   \
  template <typename T, bool isSetMask = true>                                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,                \
                           const int32_t& count) {                                                                    \
    if (count <= 0) return;                                                                                           \
    detail::scalar_op(vnpu::ScalarOp::NAME, dst, src, scalarValue, detail::lanes_of_count(count, isSetMask),          \
                      UnaryRepeatParams(), #NAME);                                                                    \
  }                                                                                                                   \
  template <typename T, typename U, bool isSetMask = true, detail::same_scalar<T, U> = true>                          \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalarValue,                \
                           const int32_t& count) {                                                                    \
    NAME<T, isSetMask>(dst, src, scalarValue, count);                                                                 \
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
  }                                                                                                                  \
  template <typename T, typename U, bool isSetMask = true, detail::same_scalar<T, U> = true>                         \
  ASCENDC_INLINE void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalarValue, MASK,   \
                                 const uint8_t repeatTime, const UnaryRepeatParams& repeatParams, bool roundEn) {    \
    ShiftRight<T, isSetMask>(dst, src, scalarValue, mask, repeatTime, repeatParams, roundEn);                        \
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
template <typename T, typename U, bool isSetMask = true, detail::same_scalar<T, U> = true>
ASCENDC_INLINE void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalarValue,
                               const int32_t& count) {
  ShiftRight<T, isSetMask>(dst, src, scalarValue, count);
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

}  // namespace AscendC
