// Scalar functions: conversions and bit counts on the scalar unit, and small helpers kernels take from the toolkit.
#pragma once
#include "kernel_utils.h"
#include "tensor.h"

namespace AscendC {

namespace Std {
template <typename T, typename U>
constexpr T min(const T src0, const U src1) {
  return src0 > src1 ? src1 : src0;
}
template <typename T, typename U>
constexpr T max(const T src0, const U src1) {
  return src0 > src1 ? src0 : src1;
}
}  // namespace Std

// ---- bits ----

// How many bits of value are countValue.
template <int countValue>
ASCENDC_INLINE int64_t GetBitCount(uint64_t valueIn) {
  static_assert(countValue == 0 || countValue == 1, "countValue must be 1 or 0");
  int64_t ones = __builtin_popcountll(valueIn);
  return countValue ? ones : 64 - ones;
}
template <int countValue>
ASCENDC_INLINE int64_t ScalarGetCountOfValue(uint64_t valueIn) {
  return GetBitCount<countValue>(valueIn);
}
ASCENDC_INLINE int64_t CountLeadingZero(uint64_t valueIn) { return valueIn ? __builtin_clzll(valueIn) : 64; }
ASCENDC_INLINE int64_t ScalarCountLeadingZero(uint64_t valueIn) { return CountLeadingZero(valueIn); }
// Bits behind the sign bit that equal it; -1 for 0 and -1.
ASCENDC_INLINE int64_t CountBitsCntSameAsSignBit(int64_t valueIn) {
  return valueIn == 0 || valueIn == -1 ? -1 : __builtin_clrsbll(valueIn);
}
// Position of the first bit, from the low end, that is countValue; -1 when there is none.
template <int countValue>
ASCENDC_INLINE int64_t GetSFFValue(uint64_t valueIn) {
  static_assert(countValue == 0 || countValue == 1, "countValue must be 1 or 0");
  uint64_t v = countValue ? valueIn : ~valueIn;
  return v ? __builtin_ctzll(v) : -1;
}
template <int countValue>
ASCENDC_INLINE int64_t ScalarGetSFFValue(uint64_t valueIn) {
  return GetSFFValue<countValue>(valueIn);
}

// ---- conversions ----

ASCENDC_INLINE float ToFloat(const bfloat16_t& bVal) { return static_cast<float>(bVal); }
template <typename T>
ASCENDC_INLINE float ToFloat(const T& bVal) {
  return static_cast<float>(bVal);
}
// Rounds to nearest even.
ASCENDC_INLINE bfloat16_t ToBfloat16(const float& fVal) { return bfloat16_t(fVal); }

namespace detail {

// What isn't exact goes to the neighbour whose last bit is 1.
ASCENDC_INLINE half to_odd_half(float value) {
  const half nearest = static_cast<half>(value);
  const float back = static_cast<float>(nearest);
  const uint16_t bits = __builtin_bit_cast(uint16_t, nearest);
  if (back == value || (bits & 1) || value != value) return nearest;
  const bool away = (value < 0 ? -value : value) > (back < 0 ? -back : back);
  return __builtin_bit_cast(half, static_cast<uint16_t>(away ? bits + 1 : bits - 1));
}

template <RoundMode roundMode>
ASCENDC_INLINE float rounded(float value) {
  if constexpr (roundMode == RoundMode::CAST_RINT) return __builtin_rintf(value);
  if constexpr (roundMode == RoundMode::CAST_FLOOR) return __builtin_floorf(value);
  if constexpr (roundMode == RoundMode::CAST_CEIL) return __builtin_ceilf(value);
  if constexpr (roundMode == RoundMode::CAST_ROUND) return __builtin_roundf(value);
  if constexpr (roundMode == RoundMode::CAST_TRUNC || roundMode == RoundMode::CAST_NONE) return __builtin_truncf(value);
  return value;
}

ASCENDC_INLINE int32_t saturated(float value) {
  if (value != value) return 0;
  if (value >= 2147483648.0f) return 2147483647;
  if (value < -2147483648.0f) return -2147483647 - 1;
  return static_cast<int32_t>(value);
}

}  // namespace detail

// float to half (CAST_ODD, otherwise to nearest even) or to int32_t (saturating).
template <typename T, typename U, RoundMode roundMode>
ASCENDC_INLINE U ScalarCast(T valueIn) {
  static_assert(std::is_same_v<T, float>, "ScalarCast converts from float");
  vnpu::scalar_cost(1);
  if constexpr (std::is_same_v<U, half>) {
    return roundMode == RoundMode::CAST_ODD ? detail::to_odd_half(valueIn) : static_cast<half>(valueIn);
  } else {
    static_assert(std::is_same_v<U, int32_t>, "ScalarCast converts to half or int32_t");
    return detail::saturated(detail::rounded<roundMode>(valueIn));
  }
}
template <typename T, typename U, RoundMode roundMode>
ASCENDC_INLINE U Cast(T valueIn) {
  return ScalarCast<T, U, roundMode>(valueIn);
}
// The newer names of ToFloat and ToBfloat16.
ASCENDC_INLINE float Cast(const bfloat16_t& bVal) { return ToFloat(bVal); }
ASCENDC_INLINE bfloat16_t Cast(const float& fVal) { return ToBfloat16(fVal); }

// The value's bits, zero extended (padding values of DataCopyPad).
template <typename T>
ASCENDC_INLINE uint64_t GetScalarBitcodeValue(T scalarValue) {
  static_assert(sizeof(T) <= 8, "a scalar of at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &scalarValue, sizeof(T));
  return bits;
}
template <typename T, typename U>
ASCENDC_INLINE U GetScalarBitcodeValue(T scalarValue) {
  static_assert(sizeof(U) <= 8 && sizeof(T) <= 8, "scalars of at most 8 bytes");
  uint64_t bits = GetScalarBitcodeValue(scalarValue);
  U value;
  std::memcpy(&value, &bits, sizeof(U));
  return value;
}

constexpr uint32_t DivCeil(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
constexpr uint32_t AlignUp(uint32_t a, uint32_t b) { return DivCeil(a, b) * b; }

// Scalar accesses to GM past the data cache.
template <typename T>
ASCENDC_INLINE void WriteGmByPassDCache(T* addr, T value) {
  static_assert(std::is_integral_v<T>, "WriteGmByPassDCache takes integers");
  vnpu::scalar_access(addr, sizeof(T), true, "WriteGmByPassDCache", false);
  *addr = value;
}
template <typename T>
ASCENDC_INLINE T ReadGmByPassDCache(T* addr) {
  static_assert(std::is_integral_v<T>, "ReadGmByPassDCache takes integers");
  vnpu::scalar_access(addr, sizeof(T), false, "ReadGmByPassDCache", false);
  return *addr;
}

}  // namespace AscendC

// The device compiler's own name of it.
ASCENDC_INLINE int64_t clz(uint64_t x) { return AscendC::CountLeadingZero(x); }

// Of CANN's compiler: bytes of tiling data to the stack (asc-devkit, generate_tiling_code.py).
ASCENDC_INLINE void copy_data_align64(uint8_t* dst, const uint8_t* src, size_t size) {
  __builtin_memcpy(dst, src, size);
}
