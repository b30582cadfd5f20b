// Whole-number arithmetic of CANN's open operator repositories (opbase, op_common/op_host/util/math_util.h). A divisor
// of 0 leaves a quotient as it is; a multiple of 0 is 0.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace Ops {
namespace Base {

template <typename T, typename U>
constexpr T FloorDiv(T x, U y) {
  return y == 0 ? x : static_cast<T>(x / y);
}

template <typename T, typename U>
constexpr T FloorAlign(T x, U y) {
  return y == 0 ? T{0} : static_cast<T>(x / y * y);
}

// Towards positive infinity, with numbers below 0 as well.
template <typename T, typename U>
constexpr T CeilDiv(T x, U y) {
  if (y == 0) return x;
  const bool more = x % y != 0 && (x < 0) == (y < 0);
  return static_cast<T>(x / y + (more ? 1 : 0));
}

// The largest number of the type where the multiple is beyond it.
template <typename T, typename U>
constexpr T CeilAlign(T x, U y) {
  if (y == 0) return T{0};
  const T multiples = CeilDiv(x, static_cast<T>(y));
  return multiples > std::numeric_limits<T>::max() / static_cast<T>(y) ? std::numeric_limits<T>::max()
                                                                       : static_cast<T>(multiples * static_cast<T>(y));
}

template <typename T>
std::enable_if_t<std::is_floating_point_v<T>, bool> IsFloatEqual(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return false;
  if (std::isinf(a) || std::isinf(b)) return std::signbit(a) == std::signbit(b);
  return std::fabs(a - b) <= std::numeric_limits<T>::epsilon();
}

// The largest power of two that is not above n; 1 for 0.
inline uint64_t LastPow2(uint64_t n) {
  uint64_t power = 1;
  while (n > 1) n >>= 1, power <<= 1;
  return power;
}

}  // namespace Base
}  // namespace Ops
