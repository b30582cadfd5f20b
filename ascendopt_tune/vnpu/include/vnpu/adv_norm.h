// Normalizing APIs: what include/ascendc/adv_norm.h and adv_norm_grad.h need of libvnpu.so.
#pragma once
#include "device.h"

namespace vnpu {

// The temporary memory of a call: the kernel's tensor, or what is left behind the kernel's buffers.
struct Scratch {
  void* begin = nullptr;
  uint64_t bytes = 0;
};

// What a tiling says of temporary memory, in floats: how many there have to be, where the values of a piece end, and
// how many elements a piece has.
struct NormPieces {
  uint32_t needed = 0, end = 0, piece = 0;
};

// dst = (src - mean) / sqrt(variance + epsilon) * gamma + beta, rows of `columns` elements. With `reuse` src holds
// values on the way.
struct LayerNorm {
  void *dst = nullptr, *mean = nullptr, *variance = nullptr, *src = nullptr;
  const void *gamma = nullptr, *beta = nullptr;
  Scratch work;
  NormPieces pieces;
  DType dtype = DType::None;
  uint32_t rows = 0, columns = 0;
  float reciprocal = 0, epsilon = 0;
  bool reuse = false;
};
void layer_norm(const LayerNorm& n);

// The same from given means and variances; 1 / sqrt(variance + epsilon) goes to rstd. Rows start `stride` elements
// apart; gamma and beta may be null.
struct Normalize {
  void *dst = nullptr, *rstd = nullptr, *src = nullptr;
  const void *mean = nullptr, *variance = nullptr, *gamma = nullptr, *beta = nullptr;
  Scratch work;
  DType dtype = DType::None, weights = DType::None;
  uint32_t rows = 0, columns = 0, stride = 0;
  float epsilon = 0;
};
void normalize(const Normalize& n);

// Means and variances, and Normalize with them. `counted`: rows that the tiling counts, at least those of `n`; the
// variances lie at the begin of the temporary memory, `first` floats long. Of rows that aren't whole blocks the rest is
// set to zero in the source.
struct LayerNormRstd {
  Normalize n;
  NormPieces pieces;
  uint32_t counted = 0, first = 0;
  float reciprocal = 0;
};
void layer_norm_rstd(const LayerNormRstd& n);

// A step of Welford's: mean and variance with one more element for each of `compute` columns; with `in_place` the
// others, up to `columns`, are taken over.
struct WelfordUpdate {
  void *mean = nullptr, *variance = nullptr, *src = nullptr;
  const void *in_mean = nullptr, *in_variance = nullptr;
  Scratch work;
  DType dtype = DType::None;
  uint32_t rows = 0, columns = 0, compute = 0;
  float reciprocal = 0;
  bool reuse = false, in_place = false;
};
void welford_update(const WelfordUpdate& w);

// The mean and the variance of all columns. Without `counts` the first `head` columns count head_count times each, the
// others tail_count times.
struct WelfordFinalize {
  void *mean = nullptr, *variance = nullptr;
  const void *in_mean = nullptr, *in_variance = nullptr, *counts = nullptr;
  Scratch work;
  uint32_t rounds = 0, columns = 0, head_count = 0, head = 0, tail_count = 0, tail = 0;
  float of_columns = 0, of_all = 0;  // reciprocals
};
void welford_finalize(const WelfordFinalize& w);

// The gradient of LayerNorm's source, and what LayerNormGradBeta needs. With `reuse` dy and src hold values on the way.
struct LayerNormGrad {
  void *dst = nullptr, *for_gamma = nullptr, *dy = nullptr, *src = nullptr;
  const void *variance = nullptr, *mean = nullptr, *gamma = nullptr;
  Scratch work;
  NormPieces pieces;
  DType dtype = DType::None;
  uint32_t rows = 0, columns = 0;
  float epsilon = 0, reciprocal = 0, twice_reciprocal = 0;
  bool reuse = false;
};
void layer_norm_grad(const LayerNormGrad& n);

// The gradients of gamma and beta: sums over rows, of `valid` columns.
struct LayerNormGradBeta {
  void *gamma = nullptr, *beta = nullptr, *for_gamma = nullptr;
  const void* dy = nullptr;
  Scratch work;
  NormPieces pieces;
  DType dtype = DType::None;
  uint32_t rows = 0, columns = 0, valid = 0;
  bool reuse = false;
};
void layer_norm_grad_beta(const LayerNormGradBeta& n);

// Over the first axis of src[rows, columns]: a mean and a variance for each column, gamma and beta for each row.
// NormPieces are of columns.
struct BatchNorm {
  void *dst = nullptr, *mean = nullptr, *variance = nullptr;
  const void *src = nullptr, *gamma = nullptr, *beta = nullptr;
  Scratch work;
  NormPieces pieces;
  DType dtype = DType::None;
  uint32_t rows = 0, columns = 0;
  float reciprocal = 0, epsilon = 0;
  bool basic_block = false;
};
void batch_norm(const BatchNorm& n);

// LayerNorm of alpha * src + gx, rows of `columns` elements, of which `valid` are data.
struct DeepNorm {
  LayerNorm n;
  const void* gx = nullptr;
  uint32_t valid = 0;
  float alpha = 0;
  bool basic_block = false;
};
void deep_norm(const DeepNorm& d);

// src[n, channels, hw], planes of hw elements in whole blocks: a mean and a variance for each of n * groups groups of
// channels, gamma and beta for each channel.
struct GroupNorm {
  void *dst = nullptr, *mean = nullptr, *variance = nullptr, *src = nullptr;
  const void *gamma = nullptr, *beta = nullptr;
  Scratch work;
  NormPieces pieces;
  DType dtype = DType::None;
  uint32_t n = 0, channels = 0, groups = 0, hw = 0, stride = 0;
  float reciprocal = 0, epsilon = 0;
  bool reuse = false, small = false;
};
void group_norm(const GroupNorm& g);

}  // namespace vnpu
