// half and bfloat16 as the vector unit sees them: 16-bit storage, arithmetic in float, rounding to nearest even.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace vnpu {

inline float bits_to_float(uint32_t u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
inline uint32_t float_to_bits(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
}

inline float half_to_float(uint16_t h) {
#if defined(__F16C__)
  return _cvtsh_ss(h);
#else
  uint32_t sign = uint32_t(h & 0x8000) << 16, exp = h >> 10 & 0x1f, man = h & 0x3ff;
  if (exp == 0x1f) return bits_to_float(sign | 0x7f800000 | man << 13);
  if (exp == 0) {  // subnormal: exact in float
    float f = static_cast<float>(man) * 5.9604644775390625e-08f;
    return sign ? -f : f;
  }
  return bits_to_float(sign | (exp + 112) << 23 | man << 13);
#endif
}

inline uint16_t float_to_half(float f) {
#if defined(__F16C__)
  return static_cast<uint16_t>(_cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT));
#else
  uint32_t x = float_to_bits(f), sign = x >> 16 & 0x8000, mag = x & 0x7fffffff;
  if (mag > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (mag >> 13 & 0x3ff));
  if (mag >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
  if (mag < 0x38800000) {  // subnormal half: let the float unit round
    float r = bits_to_float(mag) + 0.5f;
    return static_cast<uint16_t>(sign | (float_to_bits(r) - 0x3f000000));
  }
  uint32_t odd = mag >> 13 & 1;
  return static_cast<uint16_t>(sign | (mag - 0x38000000 + 0xfff + odd) >> 13);
#endif
}

inline float bfloat16_to_float(uint16_t b) { return bits_to_float(uint32_t(b) << 16); }
inline uint16_t float_to_bfloat16(float f) {
  uint32_t x = float_to_bits(f);
  if ((x & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(x >> 16 | 0x40);
  return static_cast<uint16_t>((x + 0x7fff + (x >> 16 & 1)) >> 16);
}

// Lane types: convert on load and store, so that a body written for float works for them.
struct f16 {
  uint16_t bits;
  operator float() const { return half_to_float(bits); }
  f16& operator=(float f) {
    bits = float_to_half(f);
    return *this;
  }
};
struct bf16 {
  uint16_t bits;
  operator float() const { return bfloat16_to_float(bits); }
  bf16& operator=(float f) {
    bits = float_to_bfloat16(f);
    return *this;
  }
};

// Runs of lanes: the loops compilers don't vectorize by themselves.
inline void widen(const f16* from, float* to, size_t n) {
  size_t whole = 0;
#if defined(__F16C__)
  whole = n / 8 * 8;
  for (size_t i = 0; i < whole; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
  for (size_t i = whole; i < n; i++) to[i] = half_to_float(from[i].bits);
}
inline void narrow(const float* from, f16* to, size_t n) {
  size_t whole = 0;
#if defined(__F16C__)
  whole = n / 8 * 8;
  for (size_t i = 0; i < whole; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (size_t i = whole; i < n; i++) to[i].bits = float_to_half(from[i]);
}
inline void widen(const bf16* from, float* to, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = bfloat16_to_float(from[i].bits);
}
inline void narrow(const float* from, bf16* to, size_t n) {
  for (size_t i = 0; i < n; i++) {  // float_to_bfloat16 without a branch, so that the loop vectorizes
    uint32_t x = float_to_bits(from[i]);
    uint32_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16, nan = x >> 16 | 0x40;
    to[i].bits = static_cast<uint16_t>((x & 0x7fffffff) > 0x7f800000 ? nan : rounded);
  }
}

}  // namespace vnpu
