// Composite APIs over rows and columns: what include/ascendc/adv_rows.h needs of libvnpu.so.
#pragma once
#include "device.h"

namespace vnpu {

enum class Fold { Max, Min, Prod, Sum };

// src[rows, columns], whose rows start `stride` elements apart, reduced along its first or its last axis. `work` (null
// where none was given) holds what is folded on the way; with `reuse` that is the source.
struct AxisReduction {
  void* dst = nullptr;
  void* src = nullptr;
  void* work = nullptr;
  DType dtype = DType::None;
  uint32_t rows = 0, columns = 0, stride = 0;
  bool first_axis = false, reuse = false;
};
void reduce_axis(Fold fold, const AxisReduction& r, const char* api);

// dst = src * gamma / sqrt(sum(src * src) * reciprocal + epsilon), rows of `columns` elements, in float.
struct RmsNorm {
  void* dst = nullptr;
  const void *src = nullptr, *gamma = nullptr;
  void* work = nullptr;
  DType dtype = DType::None;
  uint32_t rows = 0, columns = 0;
  float reciprocal = 0, epsilon = 0;
};
void rms_norm(const RmsNorm& n);

// Running sums of src[outer, inner] along its last or its first axis, in float. `last` (may be null) gets the last
// column or row.
struct CumSum {
  void *dst = nullptr, *last = nullptr;
  const void* src = nullptr;
  DType dtype = DType::None;
  uint32_t outer = 0, inner = 0;
  bool last_axis = true;
};
void cum_sum(const CumSum& c);

}  // namespace vnpu
