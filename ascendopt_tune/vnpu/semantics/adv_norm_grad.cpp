// LayerNormGrad and LayerNormGradBeta: as adv_norm.cpp.
#include <cmath>

#include "norm_steps.h"

namespace vnpu {
namespace {

// ---- LayerNormGrad ----

void declare_layer_norm_grad(LocalCall& call, const LayerNormGrad& n) {
  const uint32_t size = dtype_size(n.dtype);
  const uint64_t row = uint64_t(n.columns) * size;
  require_blocks(call, n.columns, n.dtype, "the last axis");
  call.require(!n.reuse || n.dtype == DType::F32, "isReuseSource has to be false for half");
  require_tiling(call, n.pieces, n.work, "GetLayerNormGradNDTilingInfo");
  call.read(n.dy, row, "inputDy", kBlockBytes, n.rows, row);
  call.read(n.src, row, "inputX", kBlockBytes, n.rows, row);
  call.read(n.variance, size, "inputVariance", size, n.rows, size);
  call.read(n.mean, size, "inputMean", size, n.rows, size);
  call.read(n.gamma, row, "inputGamma");
  call.write(n.dst, row, "outputPdX", kBlockBytes, n.rows, row);
  call.write(n.for_gamma, row, "resForGamma", kBlockBytes, n.rows, row);
  call.write(n.work.begin, uint64_t(n.pieces.end) * sizeof(float), "sharedTmpBuffer");
  if (!n.reuse) return;
  call.write(n.dy, row, "inputDy", kBlockBytes, n.rows, row);
  call.write(n.src, row, "inputX", kBlockBytes, n.rows, row);
}

void layer_norm_grad_row(const LayerNormGrad& n, uint32_t r) {
  const uint64_t first = uint64_t(r) * n.columns;
  const float spread = load_float(n.variance, r, n.dtype) + n.epsilon, mean = load_float(n.mean, r, n.dtype);
  const float rstd = 1.0f / std::sqrt(spread), cubed = 1.0f / std::sqrt(spread * spread * spread);
  std::vector<float> scaled = loaded_floats(n.dy, first, n.columns, n.dtype);
  std::vector<float> from_mean = loaded_floats(n.src, first, n.columns, n.dtype), v(n.columns);
  for (uint32_t c = 0; c < n.columns; c++) {
    scaled[c] *= load_float(n.gamma, c, n.dtype);
    from_mean[c] -= mean;
    v[c] = -0.5f * (scaled[c] * (from_mean[c] * cubed));
  }
  const float of_variance = folded_sum(v.data(), n.columns);
  for (uint32_t c = 0; c < n.columns; c++) v[c] = -(scaled[c] * rstd);
  float of_mean = folded_sum(v.data(), n.columns);
  for (uint32_t c = 0; c < n.columns; c++) v[c] = -2.0f * from_mean[c];
  of_mean += of_variance * (folded_sum(v.data(), n.columns) * n.reciprocal);
  const float to_variance = of_variance * n.twice_reciprocal, to_mean = of_mean * n.reciprocal;
  for (uint32_t c = 0; c < n.columns; c++) {
    const float rest = to_variance * from_mean[c] + to_mean;
    if (n.reuse) {
      store_float(n.dy, first + c, n.dtype, rest);
      store_float(n.src, first + c, n.dtype, from_mean[c]);
    }
    store_float(n.dst, first + c, n.dtype, rest + scaled[c] * rstd);
    store_float(n.for_gamma, first + c, n.dtype, from_mean[c] * rstd);
  }
}

// Row by row, repeat by repeat, until one number is left (asc-devkit, ReduceSumImpl).
void sum_each_row(NormSteps& steps, uint32_t rows, uint32_t columns) {
  for (uint32_t n = columns; n > 1; n = (n + kRepeatFloats - 1) / kRepeatFloats) {
    const uint32_t whole = n / kRepeatFloats;
    if (whole) steps.add("ReduceRepeatSum", whole, rows, rows);
    if (n % kRepeatFloats) steps.add("ReduceRepeatSum", 1, rows, rows);
    steps.barrier();
  }
}

void one_by(NormSteps& steps, uint32_t rows) {
  steps.add("Duplicate", 1);
  steps.each({"Div"}, rows);
}

void layer_norm_grad_steps(NormSteps& steps, uint32_t rows, uint32_t columns, bool half) {
  const uint64_t all = uint64_t(rows) * columns;
  if (half) steps.each({"Cast"}, all);
  if (half) steps.add("Cast", float_repeats(columns), 1, 0);
  steps.add("Mul", float_repeats(columns), rows);
  if (half) steps.each({"Cast"}, all);
  if (half) steps.add("Cast", float_repeats(rows), 1, 0);
  steps.brcb_rows(rows, columns);
  steps.each({"Sub"}, all);
  if (half) steps.each({"Cast"}, rows);
  steps.each({"Adds", "Mul", "Mul", "Sqrt"}, rows);
  one_by(steps, rows);
  steps.brcb_rows(rows, columns);
  steps.each({"Mul", "Mul", "Muls"}, all);
  sum_each_row(steps, rows, columns);
  steps.barrier();
  steps.each({"Adds", "Sqrt"}, rows);
  one_by(steps, rows);
  steps.brcb_rows(rows, columns);
  steps.each({"Mul", "Mul", "Muls"}, all);
  sum_each_row(steps, rows, columns);
  steps.each({"Muls"}, all);
  sum_each_row(steps, rows, columns);
  steps.barrier();
  steps.each({"Muls", "Mul", "Add", "Muls"}, rows);
  steps.brcb_rows(rows, columns);
  steps.each({"Mul"}, all);
  steps.each({"Muls"}, rows);
  steps.brcb_rows(rows, columns);
  steps.each({"Add", "Add"}, all);
  if (half) steps.add("Cast", float_repeats(all), 2);
}

}  // namespace

void layer_norm_grad(const LayerNormGrad& n) {
  LocalCall call("LayerNormGrad", VNPU_PC);
  check_float(call, n.dtype);
  if (nothing_to_do(n.pieces, n.rows, n.columns)) return;
  declare_layer_norm_grad(call, n);
  for (uint32_t r = 0; r < n.rows; r++) layer_norm_grad_row(n, r);
  const uint32_t at_once = std::max(n.pieces.piece / n.columns, 1u);
  NormSteps steps(call);
  for (uint32_t r = 0; r < n.rows; r += at_once)
    layer_norm_grad_steps(steps, std::min(at_once, n.rows - r), n.columns, n.dtype == DType::F16);
  declare_layer_norm_grad(call, n);
  steps.issue();
  leave_whole_mask(call.core);
}

namespace {

// ---- LayerNormGradBeta ----

void declare_layer_norm_grad_beta(LocalCall& call, const LayerNormGradBeta& n) {
  const uint64_t row = uint64_t(n.columns) * dtype_size(n.dtype), valid = uint64_t(n.valid) * dtype_size(n.dtype);
  require_blocks(call, n.columns, n.dtype, "the last axis");
  call.require(!n.reuse || n.dtype == DType::F32, "isReuseSource has to be false for half");
  require_tiling(call, n.pieces, n.work, "GetLayerNormGradBetaNDTilingInfo");
  call.require(n.valid >= 1 && n.valid <= n.columns, "the tiling's originalHLength has to be in 1..hLength");
  call.read(n.for_gamma, valid, "resForGamma", kBlockBytes, n.rows, row);
  call.read(n.dy, valid, "inputDy", kBlockBytes, n.rows, row);
  call.write(n.gamma, valid, "outputPdGamma");
  call.write(n.beta, valid, "outputPdBeta");
  call.write(n.work.begin, uint64_t(n.pieces.end) * sizeof(float), "sharedTmpBuffer");
  if (n.reuse) call.write(n.for_gamma, uint64_t(n.pieces.piece) * sizeof(float), "resForGamma");
}

void sum_rows(const LayerNormGradBeta& n) {
  std::vector<float> gamma(n.columns), beta(n.columns);
  const uint32_t at_once = n.pieces.piece / n.columns;
  for (uint32_t r = 0; r < n.rows; r++) {
    for (uint32_t c = 0; c < n.columns; c++) {
      const uint64_t i = uint64_t(r) * n.columns + c;
      const float dy = load_float(n.dy, i, n.dtype), product = dy * load_float(n.for_gamma, i, n.dtype);
      gamma[c] = r ? product + gamma[c] : product;
      beta[c] = r ? dy + beta[c] : dy;
      if (n.reuse) store_float(n.for_gamma, uint64_t(r % at_once) * n.columns + c, n.dtype, product);
    }
  }
  for (uint32_t c = 0; c < n.valid; c++) {
    store_float(n.gamma, c, n.dtype, gamma[c]);
    store_float(n.beta, c, n.dtype, beta[c]);
  }
}

}  // namespace

void layer_norm_grad_beta(const LayerNormGradBeta& n) {
  LocalCall call("LayerNormGradBeta", VNPU_PC);
  check_float(call, n.dtype);
  if (nothing_to_do(n.pieces, n.rows, n.columns)) return;
  declare_layer_norm_grad_beta(call, n);
  sum_rows(n);
  const uint32_t at_once = std::max(n.pieces.piece / n.columns, 1u);
  const bool half = n.dtype == DType::F16;
  const double row = float_repeats(n.valid);
  NormSteps steps(call);
  for (uint32_t r = 0; r < n.rows; r += at_once) {
    const uint32_t rows = std::min(at_once, n.rows - r), sums = rows - (r == 0);
    if (half) steps.each({"Cast", "Cast"}, uint64_t(rows) * n.columns);
    steps.each({"Mul"}, uint64_t(rows) * n.columns);
    if (r == 0) steps.add("Adds", row, 2, 2);
    steps.add("Add", row, 2 * sums, 2 * sums);
    if (half) steps.each({"Cast", "Cast"}, n.valid);
  }
  declare_layer_norm_grad_beta(call, n);
  steps.issue();
  leave_whole_mask(call.core);
}

}  // namespace vnpu
