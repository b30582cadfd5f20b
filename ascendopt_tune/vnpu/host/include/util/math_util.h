// Whole-number arithmetic of CANN's open operator repositories (their package header util/math_util.h). A divisor of 0
// gives 0, or for multiples the number itself.
#pragma once

namespace Ops {
namespace Base {

template <typename T, typename U>
constexpr T CeilDiv(T x, U y) {
  return y == 0 ? T{0} : static_cast<T>((x + y - 1) / y);
}

template <typename T, typename U>
constexpr T FloorDiv(T x, U y) {
  return y == 0 ? T{0} : static_cast<T>(x / y);
}

template <typename T, typename U>
constexpr T CeilAlign(T x, U y) {
  return y == 0 ? x : static_cast<T>((x + y - 1) / y * y);
}

template <typename T, typename U>
constexpr T FloorAlign(T x, U y) {
  return y == 0 ? x : static_cast<T>(x / y * y);
}

}  // namespace Base
}  // namespace Ops
