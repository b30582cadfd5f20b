// exp and log in double, in a form that compilers vectorize (libm's calls don't). Their error, below 1e-11, vanishes in
// the rounding to float: results equal the correctly rounded ones but for about one in 10^4 next to a tie.
#pragma once
#include <cstdint>

#include "float16.h"

namespace vnpu {

inline uint64_t double_to_bits(double x) {
  uint64_t u;
  std::memcpy(&u, &x, 8);
  return u;
}
inline double bits_to_double(uint64_t u) {
  double x;
  std::memcpy(&x, &u, 8);
  return x;
}

// e^x: x = n ln 2 + r with |r| <= ln 2 / 2, Taylor series of e^r, times 2^n by the exponent's bits. |x| is cut to 700,
// where float has long been infinite or zero.
inline double exp_wide(double x) {
  x = x > 700.0 ? 700.0 : x;
  x = x < -700.0 ? -700.0 : x;
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the integer in the low bits
  const double shifted = x * 1.4426950408889634 + magic;
  const double n = shifted - magic;
  const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  double p = 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * bits_to_double((double_to_bits(shifted) + 1023) << 52);
}

// ln x of a float: x = 2^e m with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m - 1) / (m + 1)).
inline float log_lane(float value) {
  const uint64_t bits = double_to_bits(static_cast<double>(value));
  double m = bits_to_double((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  double e = bits_to_double((bits >> 52 & 0x7ff) | 0x4330000000000000ull) - (4503599627370496.0 + 1023.0);
  const bool high = m > 1.4142135623730951;
  m = high ? m * 0.5 : m;
  e = high ? e + 1.0 : e;
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1.0;
  float result = static_cast<float>(e * 0.6931471805599453 + 2.0 * s * p);
  result = value == 0.0f ? -INFINITY : result;
  result = value < 0.0f ? NAN : result;
  result = value == INFINITY ? INFINITY : result;
  return value != value ? value : result;
}

inline float exp_lane(float x) { return static_cast<float>(exp_wide(x)); }
inline float sigmoid_lane(float x) { return static_cast<float>(1.0 / (1.0 + exp_wide(-static_cast<double>(x)))); }
inline float tanh_lane(float x) {
  const double wide = x, near_zero = wide - wide * wide * wide / 3.0;
  const double far = 1.0 - 2.0 / (exp_wide(2.0 * wide) + 1.0);
  return static_cast<float>(wide < 1e-3 && wide > -1e-3 ? near_zero : far);
}

}  // namespace vnpu
