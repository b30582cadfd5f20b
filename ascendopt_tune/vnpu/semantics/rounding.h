// Rounding as Cast does it (AscendC reference, precision conversion): to integers and to narrower floating types.
#pragma once
#include <limits>

#include "vnpu/cast.h"
#include "float16.h"

namespace vnpu {

// A float rounded to an integral value. Everything is made of rint, which vectorizes whatever the compiler thinks of
// floating point exceptions.
template <Round mode>
inline float to_integral(float x) {
  if constexpr (mode == Round::None || mode == Round::Rint) {
    return std::rint(x);
  } else if constexpr (mode == Round::Floor || mode == Round::Ceil) {
    float r = std::rint(x);
    if constexpr (mode == Round::Floor)
      r = r > x ? r - 1.0f : r;
    else
      r = r < x ? r + 1.0f : r;
    return std::copysign(r, x);  // zero keeps the sign of x
  } else {
    float a = std::fabs(x), r = std::rint(a);
    r = r > a ? r - 1.0f : r;
    if constexpr (mode == Round::Away) r = a - r >= 0.5f ? r + 1.0f : r;
    return std::copysign(r, x);
  }
}

// An integral float as an integer: saturates, NaN gives 0.
template <typename I>
inline I saturate(float x) {
  // The largest float that the type holds; the bound above it is a power of two, exact in float.
  constexpr int digits = std::numeric_limits<I>::digits;
  constexpr float low = static_cast<float>(std::numeric_limits<I>::min());
  constexpr float bound = static_cast<float>(1ull << (digits - 1)) * 2.0f;
  constexpr float high = digits <= 24 ? bound - 1.0f : bound - bound / (1 << 24);
  float c = x > low ? x : low;  // NaN becomes low
  c = c < high ? c : high;
  I value = static_cast<I>(c);
  value = x >= bound ? std::numeric_limits<I>::max() : value;
  return x == x ? value : I(0);
}
template <typename I>
inline I saturate(int64_t x) {
  if (x < static_cast<int64_t>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  return x > static_cast<int64_t>(std::numeric_limits<I>::max()) ? std::numeric_limits<I>::max() : static_cast<I>(x);
}

// Magnitude bits of a floating format, its nearest value to `x` (to even; overflow gives infinity) and back.
struct HalfFormat {
  using Bits = uint16_t;
  static constexpr Bits kSign = 0x8000, kInf = 0x7c00;
  static Bits nearest(float x) { return float_to_half(x); }
  static double value(Bits b) { return half_to_float(b); }
};
struct Bfloat16Format {
  using Bits = uint16_t;
  static constexpr Bits kSign = 0x8000, kInf = 0x7f80;
  static Bits nearest(float x) { return float_to_bfloat16(x); }
  static double value(Bits b) { return bfloat16_to_float(b); }
};
struct FloatFormat {
  using Bits = uint32_t;
  static constexpr Bits kSign = 0x80000000, kInf = 0x7f800000;
  template <typename X>
  static Bits nearest(X x) {
    return float_to_bits(static_cast<float>(x));
  }
  static double value(Bits b) { return bits_to_float(b); }
};

// `x` in the format, rounded in the given direction. Overflow gives infinity, or the largest value when the direction
// points away from infinity. X is float, int32_t or int64_t.
template <typename Format, typename X>
inline typename Format::Bits round_to(X x, Round mode) {
  using Bits = typename Format::Bits;
  // Magnitudes in long double: exact for every int64 (64 bits of mantissa on x86-64, 113 on aarch64).
  const bool negative = x < 0;
  const Bits sign = negative ? Format::kSign : Bits(0);
  const Bits near = static_cast<Bits>(Format::nearest(x) & ~Format::kSign);
  if (mode == Round::None || mode == Round::Rint || x != x || near > Format::kInf) return Format::nearest(x);
  const long double magnitude = negative ? -static_cast<long double>(x) : static_cast<long double>(x);
  if (Format::value(near) == magnitude) return Format::nearest(x);
  const Bits low = static_cast<Bits>(Format::value(near) > magnitude ? near - 1 : near);
  const Bits high = static_cast<Bits>(low + 1);
  bool up = false;
  switch (mode) {
    case Round::Floor:
      up = negative;
      break;
    case Round::Ceil:
      up = !negative;
      break;
    case Round::Odd:
      up = (low & 1) == 0;
      break;
    case Round::Away: {
      const long double from = Format::value(low);
      const long double step = high == Format::kInf ? from - Format::value(static_cast<Bits>(low - 1))
                                                    : static_cast<long double>(Format::value(high)) - from;
      up = magnitude - from >= step / 2;
      break;
    }
    default:
      break;
  }
  return static_cast<Bits>(sign | (up ? high : low));
}

}  // namespace vnpu
