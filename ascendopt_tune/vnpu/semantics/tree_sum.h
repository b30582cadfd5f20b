// The documented order of summation inside a repeat (AscendC reference, ReduceDataBlock): a binary tree over
// neighbours.
#pragma once
#include "float16.h"

namespace vnpu {

// The float that f becomes when it is stored as half and loaded again; without branches, so that loops vectorize.
inline float rounded_to_half(float f) {
  uint32_t x = float_to_bits(f), sign = x & 0x80000000, magnitude = x & 0x7fffffff;
  uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1)) & ~0x1fffu;
  uint32_t subnormal = float_to_bits((bits_to_float(magnitude) + 0.5f) - 0.5f);  // to a multiple of 2^-24
  uint32_t r = magnitude < 0x38800000 ? subnormal : normal;
  r = r >= 0x47800000 ? 0x7f800000 : r;
  r = magnitude > 0x7f800000 ? magnitude | 0x400000 : r;
  return bits_to_float(sign | r);
}

// Sums N (a power of two) lanes; for T = f16 every addition rounds. Each level has its own array, so that it
// vectorizes.
template <typename T, uint32_t N>
float tree_sum(const float* v) {
  if constexpr (N == 1) {
    return v[0];
  } else {
    float next[N / 2];
    for (uint32_t i = 0; i < N / 2; i++) {
      float sum = v[2 * i] + v[2 * i + 1];
      next[i] = sizeof(T) == 2 ? rounded_to_half(sum) : sum;
    }
    return tree_sum<T, N / 2>(next);
  }
}

}  // namespace vnpu
