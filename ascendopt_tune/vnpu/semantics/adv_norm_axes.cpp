// BatchNorm, DeepNorm and GroupNorm: as adv_norm.cpp.
#include <cmath>

#include "norm_steps.h"

namespace vnpu {
namespace {

// ---- BatchNorm ----

constexpr uint32_t kBasicRows = 8, kBasicMost = 2048;

void declare_batch_norm(LocalCall& call, const BatchNorm& n) {
  const uint32_t size = dtype_size(n.dtype);
  const uint64_t row = uint64_t(n.columns) * size, all = n.rows * row, weights = uint64_t(n.rows) * size;
  require_blocks(call, n.columns, n.dtype, "S * H");
  require_tiling(call, n.pieces, n.work, "GetBatchNormNDTilingInfo");
  call.require(!n.basic_block || (n.rows % kBasicRows == 0 && n.columns % kRepeatFloats == 0 && n.columns < kBasicMost),
               "isBasicBlock needs a first axis of 8s, and S * H of 64s and below 2048");
  require_apart(call, {{n.mean, row, "outputMean"}, {n.variance, row, "outputVariance"}, {n.dst, all, "output"}},
                {{n.gamma, weights, "gamm"}, {n.beta, weights, "beta"}});
  require_apart(call, {{n.mean, row, "outputMean"}, {n.variance, row, "outputVariance"}},
                {{n.src, all, "inputX"}, {n.dst, all, "output"}});
  call.read(n.src, all, "inputX");
  call.read(n.gamma, weights, "gamm");
  call.read(n.beta, weights, "beta");
  call.write(n.dst, all, "output");
  call.write(n.mean, row, "outputMean");
  call.write(n.variance, row, "outputVariance");
  call.write(n.work.begin, uint64_t(n.pieces.end) * sizeof(float), "sharedTmpBuffer");
}

void batch_norm_column(const BatchNorm& n, uint32_t c) {
  std::vector<float> column(n.rows);
  for (uint32_t r = 0; r < n.rows; r++) column[r] = load_float(n.src, uint64_t(r) * n.columns + c, n.dtype);
  float mean = 0, variance = 0;
  for (uint32_t r = 0; r < n.rows; r++) mean += column[r] * n.reciprocal;
  for (uint32_t r = 0; r < n.rows; r++) variance += (column[r] - mean) * (column[r] - mean) * n.reciprocal;
  const float rstd = std::exp(std::log(variance + n.epsilon) * -0.5f);
  for (uint32_t r = 0; r < n.rows; r++) {
    const float scaled = (column[r] - mean) * rstd * load_float(n.gamma, r, n.dtype);
    store_float(n.dst, uint64_t(r) * n.columns + c, n.dtype, scaled + load_float(n.beta, r, n.dtype));
  }
  store_float(n.mean, c, n.dtype, mean);
  store_float(n.variance, c, n.dtype, variance);
}

// An instruction over a piece of `columns` columns: one a row, or in basic blocks one for each repeat of a row.
void over_rows(NormSteps& steps, const BatchNorm& n, const char* instruction, uint32_t columns, uint32_t rows,
               uint64_t barriers = 1) {
  if (n.basic_block)
    steps.add(instruction, rows, columns / kRepeatFloats, barriers);
  else
    steps.add(instruction, float_repeats(columns), rows, barriers);
}

void add_rows(NormSteps& steps, const BatchNorm& n, uint32_t columns) {
  steps.each({"Copy"}, columns);
  over_rows(steps, n, "Add", columns, n.rows - 1, n.basic_block ? 1 : n.rows);
}

// gamma or beta to all of their rows: the scalar unit reads them, or in basic blocks Brcb and Adds fill the rows.
void spread_weights(NormSteps& steps, const BatchNorm& n, const void* weights, uint32_t columns) {
  if (n.dtype == DType::F16) steps.each({"Cast"}, n.rows);
  if (n.basic_block) {
    steps.add("Brcb", n.rows / kBasicRows);
    steps.add("Adds", n.rows, kBlockFloats - 1);
    steps.add("Adds", n.rows, columns / kRepeatFloats - 1);
  } else if (n.dtype == DType::F16) {
    steps.by_scalars(static_cast<const float*>(n.work.begin), n.rows, "Duplicate", columns, false);
  } else {
    steps.by_scalars(static_cast<const float*>(weights), n.rows, "Duplicate", columns, false);
  }
}

void batch_norm_steps(NormSteps& steps, const BatchNorm& n, uint32_t columns) {
  const uint64_t all = uint64_t(n.rows) * columns;
  const bool half = n.dtype == DType::F16;
  if (half) over_rows(steps, n, "Cast", columns, n.rows);
  over_rows(steps, n, "Muls", columns, n.rows);
  add_rows(steps, n, columns);
  if (half) steps.each({"Cast"}, columns);
  over_rows(steps, n, "Sub", columns, n.rows, n.basic_block ? columns / kRepeatFloats : 1);
  steps.each({"Mul", "Muls"}, all);
  add_rows(steps, n, columns);
  if (half) steps.each({"Cast"}, columns);
  steps.each({"Adds", "Ln", "Muls", "Exp"}, columns);
  over_rows(steps, n, "Mul", columns, n.rows);
  spread_weights(steps, n, n.gamma, columns);
  steps.each({"Mul"}, all);
  spread_weights(steps, n, n.beta, columns);
  if (half && n.basic_block)
    steps.each({"Add"}, all);
  else
    over_rows(steps, n, "Add", columns, n.rows);
  if (half) over_rows(steps, n, "Cast", columns, n.rows, 2);
}

}  // namespace

void batch_norm(const BatchNorm& n) {
  LocalCall call("BatchNorm", VNPU_PC);
  check_float(call, n.dtype);
  if (nothing_to_do(n.pieces, n.rows, n.columns)) return;
  declare_batch_norm(call, n);
  for (uint32_t c = 0; c < n.columns; c++) batch_norm_column(n, c);
  const uint32_t at_once = std::max(n.pieces.piece / n.rows, 1u);
  NormSteps steps(call);
  for (uint32_t c = 0; c < n.columns; c += at_once) batch_norm_steps(steps, n, std::min(at_once, n.columns - c));
  declare_batch_norm(call, n);
  steps.issue();
  leave_whole_mask(call.core);
}

namespace {

// ---- DeepNorm ----

constexpr uint32_t kDeepNormMost = 2040;

void require_deep_norm(const LocalCall& call, const DeepNorm& d) {
  const LayerNorm& n = d.n;
  const uint64_t all = uint64_t(n.rows) * n.columns * dtype_size(n.dtype);
  require_blocks(call, n.columns, n.dtype, "the last axis");
  call.require(!n.reuse || n.dtype == DType::F32, "isReuseSrc has to be false for half");
  require_tiling(call, n.pieces, n.work, "GetDeepNormTilingInfo");
  call.require(n.columns <= kDeepNormMost, "the last axis has to be at most 2040 elements");
  call.require(d.valid >= 1 && d.valid <= n.columns, "the tiling's originalHLength has to be in 1..hLength");
  call.require(
      !d.basic_block || (n.rows % kBasicRows == 0 && n.columns % kRepeatFloats == 0 && d.valid % kRepeatFloats == 0),
      "isBasicBlock needs B * S of 8s and H of 64s");
  if (!n.reuse) require_apart(call, {{n.src, all, "srcLocal"}}, {{n.dst, all, "dstLocal"}});
}

void declare_deep_norm(LocalCall& call, const DeepNorm& d) {
  const LayerNorm& n = d.n;
  const uint64_t row = uint64_t(n.columns) * dtype_size(n.dtype);
  call.read(n.src, row, "srcLocal", kBlockBytes, n.rows, row);
  call.read(d.gx, row, "gxLocal", kBlockBytes, n.rows, row);
  call.read(n.gamma, row, "gammaLocal");
  call.read(n.beta, row, "betaLocal");
  call.write(n.dst, row, "dstLocal", kBlockBytes, n.rows, row);
  write_numbers(call, n.mean, n.rows, n.dtype, "meanLocal");
  write_numbers(call, n.variance, n.rows, n.dtype, "rstdLocal");
  call.write(n.work.begin, uint64_t(n.pieces.end) * sizeof(float), "sharedTmpBuffer");
  if (n.reuse) call.write(n.src, uint64_t(n.pieces.piece) * sizeof(float), "srcLocal");
}

// rstdLocal gets the variance, as in the page's example and in asc-devkit's sample.
void deep_norm_row(const DeepNorm& d, uint32_t r) {
  const LayerNorm& n = d.n;
  const uint64_t first = uint64_t(r) * n.columns;
  std::vector<float> row(n.columns);
  for (uint32_t c = 0; c < n.columns; c++)
    row[c] = load_float(d.gx, first + c, n.dtype) + load_float(n.src, first + c, n.dtype) * d.alpha;
  const RowStatistics s = statistics_of(row, d.valid, n.reciprocal);
  const float rstd = 1.0f / std::sqrt(s.variance + n.epsilon);
  for (uint32_t c = 0; c < n.columns; c++) {
    const float scaled = (row[c] - s.mean) * rstd * load_float(n.gamma, c, n.dtype);
    if (n.reuse) store_float(n.src, (first + c) % n.pieces.piece, n.dtype, scaled);
    store_float(n.dst, first + c, n.dtype, scaled + load_float(n.beta, c, n.dtype));
  }
  store_float(n.mean, r, n.dtype, s.mean);
  store_float(n.variance, r, n.dtype, s.variance);
}

void deep_norm_sums(NormSteps& steps, const DeepNorm& d, uint32_t rows) {
  if (d.basic_block) {
    const uint32_t parts = d.n.columns / kRepeatFloats;
    steps.add("Add", rows, parts - 1, parts - 1);
    return steps.add("ReduceRepeatSum", rows, 2, 2);
  }
  for (uint32_t n = d.valid; n > 1; n = (n + kRepeatFloats - 1) / kRepeatFloats) {
    const uint32_t times = n <= kRepeatFloats ? 2 * rows : rows;
    steps.add("ReduceRepeatSum", float_repeats(n), times, times);
  }
}

// A number of each row with all of it: eight rows at once by Brcb in basic blocks where that pays, else by the scalar
// unit.
void deep_norm_rows(NormSteps& steps, const DeepNorm& d, const char* by_row, const char* by_block, uint32_t rows) {
  const uint32_t parts = d.n.columns / kRepeatFloats;
  if (d.basic_block && d.n.pieces.piece % (d.n.columns * kBasicRows) == 0 && rows > parts) {
    steps.add("Brcb", rows / kBasicRows);
    steps.add("Adds", rows);
    steps.add(by_block, rows, parts);
    if (std::string(by_block) == "Mul") steps.each({"Adds"}, uint64_t(rows) * d.n.columns);
  } else {
    steps.by_scalars(static_cast<const float*>(d.n.work.begin), rows, by_row, d.n.columns, false);
  }
}

void deep_norm_weights(NormSteps& steps, const DeepNorm& d, const char* instruction, uint32_t rows) {
  if (d.basic_block)
    steps.add(instruction, rows, d.n.columns / kRepeatFloats);
  else
    steps.add(instruction, float_repeats(d.n.columns), rows);
}

void deep_norm_steps(NormSteps& steps, const DeepNorm& d, uint32_t rows) {
  const uint64_t all = uint64_t(rows) * d.n.columns;
  const bool half = d.n.dtype == DType::F16;
  if (half) steps.each({"Cast", "Cast"}, all);
  steps.each({"Muls", "Add", "Muls"}, all);
  deep_norm_sums(steps, d, rows);
  deep_norm_rows(steps, d, "Adds", "Sub", rows);
  steps.each({"Mul", "Muls"}, all);
  deep_norm_sums(steps, d, rows);
  steps.each({"Adds", "Duplicate", "Sqrt", "Div"}, rows);
  deep_norm_rows(steps, d, "Muls", "Mul", rows);
  if (half) steps.each({"Cast"}, d.n.columns);
  deep_norm_weights(steps, d, "Mul", rows);
  if (half) steps.each({"Cast"}, d.n.columns);
  deep_norm_weights(steps, d, "Add", rows);
  if (half) steps.each({"Cast"}, all);
}

}  // namespace

void deep_norm(const DeepNorm& d) {
  LocalCall call("DeepNorm", VNPU_PC);
  const LayerNorm& n = d.n;
  check_float(call, n.dtype);
  if (nothing_to_do(n.pieces, n.rows, n.columns)) return;
  require_deep_norm(call, d);
  declare_deep_norm(call, d);
  for (uint32_t r = 0; r < n.rows; r++) deep_norm_row(d, r);
  const uint32_t at_once = std::max(n.pieces.piece / n.columns, 1u);
  NormSteps steps(call);
  for (uint32_t r = 0; r < n.rows; r += at_once) deep_norm_steps(steps, d, std::min(at_once, n.rows - r));
  if (n.dtype == DType::F16) steps.each({"Cast", "Cast"}, n.rows);
  declare_deep_norm(call, d);
  steps.issue();
  leave_whole_mask(call.core);
}

namespace {

// ---- GroupNorm ----

void declare_group_norm(LocalCall& call, const GroupNorm& g) {
  const uint32_t size = dtype_size(g.dtype), count = g.n * g.groups;
  const uint64_t group = uint64_t(g.channels / g.groups) * g.stride * size, weights = uint64_t(g.channels) * size;
  call.read(g.src, group, "inputX", kBlockBytes, count, group);
  call.read(g.gamma, weights, "gamma");
  call.read(g.beta, weights, "beta");
  call.write(g.dst, group, "output", kBlockBytes, count, group);
  write_numbers(call, g.mean, count, g.dtype, "outputMean");
  write_numbers(call, g.variance, count, g.dtype, "outputVariance");
  call.write(g.work.begin, uint64_t(g.pieces.end) * sizeof(float), "sharedTmpBuffer");
  if (g.reuse) call.write(g.src, uint64_t(g.pieces.piece) * sizeof(float), "inputX");
}

void require_group_norm(const LocalCall& call, const GroupNorm& g) {
  call.require(!g.reuse || g.dtype == DType::F32, "isReuseSource has to be false for half");
  require_tiling(call, g.pieces, g.work, "GetGroupNormNDTilingInfo");
  require_blocks(call, g.stride, g.dtype, "a plane of H * W elements with its rest");
  call.require(g.channels % g.groups == 0, "the channels, " + std::to_string(g.channels) +
                                               ", have to be a multiple of the " + std::to_string(g.groups) +
                                               " groups");
}

// Group number i of all. Behind the valid elements of a plane stand zeros in the source, which the mean takes in.
void group_norm_group(const GroupNorm& g, uint32_t i) {
  const uint32_t depth = g.channels / g.groups, all = depth * g.stride;
  const uint64_t first = uint64_t(i) * all;
  std::vector<float> v = loaded_floats(g.src, first, all, g.dtype), squares(all);
  const float mean = folded_sum(v.data(), all) * g.reciprocal;
  for (uint32_t k = 0; k < all; k++) {
    if (k % g.stride < g.hw)
      v[k] -= mean;
    else if (g.dtype == DType::F32)
      v[k] = 0;
    squares[k] = v[k] * v[k];
  }
  const float variance = folded_sum(squares.data(), all) * g.reciprocal;
  const float rstd = 1.0f / std::sqrt(variance + g.epsilon);
  for (uint32_t k = 0; k < all; k++) {
    const uint32_t channel = (i % g.groups) * depth + k / g.stride;
    float out = v[k] * rstd;
    if (k % g.stride < g.hw) out = out * load_float(g.gamma, channel, g.dtype) + load_float(g.beta, channel, g.dtype);
    store_float(g.dst, first + k, g.dtype, out);
  }
  store_float(g.mean, i, g.dtype, mean);
  store_float(g.variance, i, g.dtype, variance);
}

// The sums of `count` groups of `all` elements: repeat by repeat, or in small shapes all groups at once in two steps.
void group_sums(NormSteps& steps, const GroupNorm& g, uint32_t count, uint32_t all, bool scale_barriers) {
  if (g.small) {
    uint32_t lanes = std::min(all, kRepeatFloats);
    while (all % lanes != 0) lanes -= kBlockFloats;
    steps.add("ReduceRepeatSum", double(all / lanes) * count);
    steps.add("ReduceRepeatSum", count);
  } else {
    for (uint32_t n = all; n > 1; n = (n + kRepeatFloats - 1) / kRepeatFloats)
      steps.add("ReduceRepeatSum", float_repeats(n), count, count);
  }
  steps.add("Muls", 1, count, scale_barriers ? count : 0);
}

void group_norm_steps(NormSteps& steps, const GroupNorm& g, uint32_t count) {
  const uint32_t depth = g.channels / g.groups, one = depth * g.stride, planes = count * depth;
  const uint64_t all = uint64_t(count) * one;
  const bool half = g.dtype == DType::F16;
  steps.each({"Duplicate"}, all);
  if (half) steps.each({"Cast"}, all);
  if (g.small && !half) steps.each({"Duplicate"}, all);
  group_sums(steps, g, count, one, g.small && half);
  const auto* numbers = static_cast<const float*>(g.work.begin);
  steps.by_scalars(numbers, g.small ? count : planes, "Adds", g.small ? one : g.hw, true);
  steps.each({"Mul"}, all);
  if (g.small && !half) steps.each({"Duplicate"}, all);
  group_sums(steps, g, count, one, true);
  for (const char* instruction : {"Adds", "Duplicate", "Sqrt", "Div"}) steps.add(instruction, 1, count, count);
  steps.by_scalars(numbers, count, "Muls", one, false);
  if (half) steps.each({"Cast", "Cast"}, g.channels);
  steps.by_scalars(numbers, planes, "Muls", g.hw, true);
  steps.by_scalars(numbers, planes, "Adds", g.hw, true);
  if (half) steps.each({"Cast"}, all);
}

}  // namespace

void group_norm(const GroupNorm& g) {
  LocalCall call("GroupNorm", VNPU_PC);
  check_float(call, g.dtype);
  if (nothing_to_do(g.pieces, g.n * g.channels, g.groups * g.hw)) return;
  require_group_norm(call, g);
  declare_group_norm(call, g);
  const uint32_t count = g.n * g.groups, group = g.channels / g.groups * g.stride;
  for (uint32_t i = 0; i < count; i++) group_norm_group(g, i);
  const uint32_t at_once = std::max(g.pieces.piece / group, 1u);
  NormSteps steps(call);
  for (uint32_t i = 0; i < count; i += at_once) group_norm_steps(steps, g, std::min(at_once, count - i));
  if (g.dtype == DType::F16) steps.add("Cast", float_repeats(count), 2, 0);
  declare_group_norm(call, g);
  steps.issue();
  leave_whole_mask(call.core);
}

}  // namespace vnpu
