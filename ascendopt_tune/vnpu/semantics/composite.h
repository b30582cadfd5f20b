// What the bodies of composite APIs share: the cost of several instructions, and values as floats.
#pragma once
#include <cmath>
#include <vector>

#include "local_call.h"
#include "tree_sum.h"

namespace vnpu {

inline double repeats_of(uint64_t elements, uint32_t size) {
  return static_cast<double>((elements * size + kRepeatBytes - 1) / kRepeatBytes);
}

// What a call costs that is made of several vector instructions, by the rows of the chip's table.
class Composite {
 public:
  explicit Composite(Core& core) : core_(core) {}
  // `times` over, `units` of the row `instruction`.`type` in instructions of at most 255.
  void add(const char* instruction, double units, double times = 1, DType type = DType::F32) {
    add_heads(instruction, times * std::ceil(units / 255), times * units, type);
  }
  // So many instructions that take so many units together.
  void add_heads(const char* instruction, double heads, double units, DType type = DType::F32) {
    if (heads == 0) return;
    if (work_.heads > 0) work_.rest = core_.trace.works.number(work_);
    work_.instruction = core_.chip.instruction(instruction, type);
    work_.heads = static_cast<float>(heads);
    work_.units = static_cast<float>(units);
  }
  const Work& work() const { return work_; }
  bool empty() const { return work_.heads == 0; }
  void clear() { work_ = Work(); }

 private:
  Core& core_;
  Work work_;
};

// What calls that are made of others leave of the mask: normal mode, and every lane.
inline void leave_whole_mask(Core& core) {
  core.counter_mode = false;
  core.mask[0] = core.mask[1] = ~0ull;
}

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
