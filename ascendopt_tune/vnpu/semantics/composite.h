// What the bodies of composite APIs share: the cost of several instructions, and values as floats.
#pragma once
#include <cmath>
#include <vector>

#include "local_call.h"
#include "tree_sum.h"

namespace vnpu {

constexpr double kReduceCycles = 7;     // ReduceRepeat, per repeat
constexpr double kBlockReduce = 1;      // ReduceDataBlock of float, per repeat
constexpr double kExpDivCycles = 2;     // Exp, Div and Sqrt of float, per repeat
constexpr double kMaskCycles = 2;       // GatherMask, per repeat
constexpr double kTransposeCycles = 2;  // TransDataTo5HD, per 256 bytes: an estimate

inline double repeats_of(uint64_t elements, uint32_t size) {
  return static_cast<double>((elements * size + kRepeatBytes - 1) / kRepeatBytes);
}

// What several instructions cost: how many there are, and their cycles without the heads.
struct Composite {
  double heads = 0, cycles = 0;
  // `repeats` repeats of `each` cycles, in instructions of at most 255; `times` over.
  void add(double repeats, double each, double times = 1) {
    heads += times * std::ceil(repeats / 255);
    cycles += times * repeats * each;
  }
};

inline void check_float(const LocalCall& call, DType t) {
  if (t != DType::F32 && t != DType::F16) unsupported_dtype(call.api, t, call.pc);
}

inline float load_float(const void* p, uint64_t i, DType t) {
  return t == DType::F16 ? half_to_float(static_cast<const uint16_t*>(p)[i]) : static_cast<const float*>(p)[i];
}
inline void store_float(void* p, uint64_t i, DType t, float v) {
  if (t == DType::F16)
    static_cast<uint16_t*>(p)[i] = float_to_half(v);
  else
    static_cast<float*>(p)[i] = v;
}

// The first n elements of v (which has room up to a multiple of the lanes) as trees inside repeats, then over the
// repeats' results. T is what rounds after every addition; its lanes fill 256 bytes.
template <typename T>
float sum_of(std::vector<float>& v, uint32_t n) {
  constexpr uint32_t lanes = kRepeatBytes / sizeof(T);
  while (true) {
    uint32_t repeats = (n + lanes - 1) / lanes;
    std::fill(v.begin() + n, v.begin() + repeats * lanes, 0.0f);
    for (uint32_t r = 0; r < repeats; r++) v[r] = tree_sum<T, lanes>(v.data() + r * lanes);
    if (repeats == 1) return v[0];
    n = repeats;
  }
}

}  // namespace vnpu
