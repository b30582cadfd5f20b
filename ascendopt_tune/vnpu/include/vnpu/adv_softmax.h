// The softmax beside SoftMax itself: what include/ascendc/adv_softmax.h needs of libvnpu.so.
#pragma once
#include "adv_norm.h"

namespace vnpu {

// Rows of `columns` elements, of which `valid` are data, `piece` rows at once, each of `row_floats` floats of temporary
// memory.
struct SoftmaxRows {
  Scratch work;
  DType dtype = DType::None;
  uint32_t rows = 0, columns = 0, valid = 0, piece = 0, row_floats = 0;
};

// dst = (grad - sum(grad * src)) * src, or with `front` the sum itself, a block of it for each row.
struct SoftmaxGrad {
  void* dst = nullptr;
  const void *grad = nullptr, *src = nullptr;
  SoftmaxRows r;
  bool front = false;
};
void softmax_grad(const SoftmaxGrad& s, const char* api);

// dst = exp(src - max) / sum, with a block of either for each row.
struct SimpleSoftmax {
  void* dst = nullptr;
  const void *sum = nullptr, *max = nullptr, *src = nullptr;
  DType statistics = DType::None;
  SoftmaxRows r;
};
void simple_softmax(const SimpleSoftmax& s);

// A softmax of what came before and these rows: in_max and in_sum are of what came before, max and sum of both, and
// what came before is to be multiplied with `shrunk`.
struct SoftmaxUpdate {
  void *dst = nullptr, *sum = nullptr, *max = nullptr, *shrunk = nullptr;
  const void *src = nullptr, *in_sum = nullptr, *in_max = nullptr;
  DType statistics = DType::None;
  SoftmaxRows r;
};
void softmax_update(const SoftmaxUpdate& s);

// Rows whose maximum has the bits `from` become `to`; whether there are any. The maxima lie `step` elements
// apart.
struct AdjustSoftmax {
  void* dst = nullptr;
  const void* max = nullptr;
  DType dtype = DType::None, statistics = DType::None;
  uint32_t rows = 0, columns = 0, step = 0, from = 0;
  float to = 0;
};
bool adjust_softmax(const AdjustSoftmax& a);

}  // namespace vnpu
