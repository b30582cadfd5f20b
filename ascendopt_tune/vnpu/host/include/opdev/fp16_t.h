// op::fp16_t: half on the host, 16 bits. Of two of them the sum, difference, product and quotient are one again,
// rounded to nearest, ties to even, as CANN's are; with another number it is float.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <type_traits>

namespace op {

struct fp16_t {
  uint16_t val = 0;

  constexpr fp16_t() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  fp16_t(T value) : val(rounded(static_cast<float>(value))) {}
  operator float() const { return widened(val); }

 private:
  static float widened(uint16_t bits) {
    const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    float value = exponent == 0x1f ? (fraction != 0 ? NAN : INFINITY)
                  : exponent == 0  ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
    return (bits & 0x8000) != 0 ? -value : value;
  }
  static uint16_t rounded(float value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const float size = std::fabs(value);
    if (std::isnan(size)) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00;
    // What is below the last bit is rounded where that bit is one: an integer. A carry goes on into the exponent.
    const int exponent = size < 6.103515625e-5F ? -14 : std::ilogb(size);
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    return static_cast<uint16_t>(sign | ((exponent + 14) * 0x400 + steps));
  }
};

template <typename A, typename B>
using OfTwoHalves = std::enable_if_t<std::is_same_v<A, fp16_t> && std::is_same_v<B, fp16_t>, fp16_t>;

// Float has more than twice a half's bits and two, so that rounding to it first changes nothing.
template <typename A, typename B>
OfTwoHalves<A, B> operator+(A a, B b) {
  return float(a) + float(b);
}
template <typename A, typename B>
OfTwoHalves<A, B> operator-(A a, B b) {
  return float(a) - float(b);
}
template <typename A, typename B>
OfTwoHalves<A, B> operator*(A a, B b) {
  return float(a) * float(b);
}
template <typename A, typename B>
OfTwoHalves<A, B> operator/(A a, B b) {
  return float(a) / float(b);
}

inline std::ostream& operator<<(std::ostream& out, fp16_t value) { return out << static_cast<float>(value); }

}  // namespace op
