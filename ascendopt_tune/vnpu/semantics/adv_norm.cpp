// LayerNorm in its two forms, and Normalize: values by the documented formulas in float, rounded at the end; time as
// the vector instructions and barriers that asc-devkit's implementation issues (impl/adv_api/detail/normalization), row
// by row where it goes row by row.
#include "vnpu/adv_norm.h"

#include <cmath>

#include "norm_steps.h"

namespace vnpu {
namespace {

// ---- LayerNorm of [B, S, H] ----

void declare_layer_norm(LocalCall& call, const LayerNorm& n) {
  const uint32_t size = dtype_size(n.dtype);
  const uint64_t row = uint64_t(n.columns) * size, all = n.rows * row, numbers = uint64_t(n.rows) * size;
  require_blocks(call, n.columns, n.dtype, "the last axis");
  call.require(!n.reuse || n.dtype == DType::F32, "isReuseSource has to be false for half");
  require_tiling(call, n.pieces, n.work, "GetLayerNormNDTilingInfo");
  require_apart(call,
                {{n.mean, numbers, "outputMean"}, {n.variance, numbers, "outputVariance"}, {n.dst, all, "output"}},
                {{n.gamma, row, "gamma"}, {n.beta, row, "beta"}});
  require_apart(call, {{n.mean, numbers, "outputMean"}, {n.variance, numbers, "outputVariance"}},
                {{n.src, all, "inputX"}, {n.dst, all, "output"}});
  call.read(n.src, row, "inputX", kBlockBytes, n.rows, row);
  call.read(n.gamma, row, "gamma");
  call.read(n.beta, row, "beta");
  call.write(n.dst, row, "output", kBlockBytes, n.rows, row);
  write_numbers(call, n.mean, n.rows, n.dtype, "outputMean");
  write_numbers(call, n.variance, n.rows, n.dtype, "outputVariance");
  call.write(n.work.begin, uint64_t(n.pieces.end) * sizeof(float), "sharedTmpBuffer");
  if (n.reuse) call.write(n.src, uint64_t(n.pieces.piece) * sizeof(float), "inputX");
}

void layer_norm_row(const LayerNorm& n, uint32_t r) {
  const uint64_t first = uint64_t(r) * n.columns, pieces_rows = n.pieces.piece / n.columns;
  const std::vector<float> row = loaded_floats(n.src, first, n.columns, n.dtype);
  const RowStatistics s = statistics_of(row, n.columns, n.reciprocal);
  const float rstd = 1.0f / std::sqrt(s.variance + n.epsilon);
  for (uint32_t c = 0; c < n.columns; c++) {
    const float scaled = rstd * (row[c] - s.mean) * load_float(n.gamma, c, n.dtype);
    if (n.reuse) store_float(n.src, (r % pieces_rows) * n.columns + c, n.dtype, scaled);
    store_float(n.dst, first + c, n.dtype, scaled + load_float(n.beta, c, n.dtype));
  }
  store_float(n.mean, r, n.dtype, s.mean);
  store_float(n.variance, r, n.dtype, s.variance);
}

void layer_norm_steps(NormSteps& steps, uint32_t rows, uint32_t columns, bool half) {
  const uint64_t all = uint64_t(rows) * columns;
  const double row = float_repeats(columns);
  if (half) steps.each({"Cast"}, all);
  steps.each({"Muls"}, all);
  steps.row_sums(rows, columns);
  steps.broadcast_rows(rows, columns);
  steps.each({"Sub", "Mul", "Muls"}, all);
  steps.row_sums(rows, columns);
  steps.barrier();
  steps.broadcast_rows(rows, columns);
  steps.each({"Adds", "Sqrt"}, all);
  steps.add("Duplicate", 1);
  steps.each({"Div", "Mul"}, all);
  if (half) steps.each({"Cast"}, columns);
  steps.add("Mul", row, rows);
  if (half) steps.each({"Cast"}, columns);
  steps.add("Add", row, rows);
  if (half) steps.each({"Cast"}, all);
}

}  // namespace

void layer_norm(const LayerNorm& n) {
  LocalCall call("LayerNorm", VNPU_PC);
  check_float(call, n.dtype);
  if (nothing_to_do(n.pieces, n.rows, n.columns)) return;
  declare_layer_norm(call, n);
  for (uint32_t r = 0; r < n.rows; r++) layer_norm_row(n, r);
  const uint32_t at_once = std::max(n.pieces.piece / n.columns, 1u);
  NormSteps steps(call);
  for (uint32_t r = 0; r < n.rows; r += at_once)
    layer_norm_steps(steps, std::min(at_once, n.rows - r), n.columns, n.dtype == DType::F16);
  if (n.dtype == DType::F16) steps.each({"Cast", "Cast"}, n.rows);
  declare_layer_norm(call, n);  // the last step leaves the result: what waits for it waits for that
  steps.issue();
  leave_whole_mask(call.core);
}

namespace {

// ---- Normalize ----

uint64_t pitch_bytes(const Normalize& n) { return uint64_t(n.stride) * dtype_size(n.dtype); }
bool converts(const Normalize& n) { return n.weights == DType::F16; }

// Rows that are normalized at once: two of floats for each of them have to fit, and gamma and beta where they are half.
uint32_t rows_at_once(const LocalCall& call, const Normalize& n) {
  const uint64_t two = uint64_t(n.stride) * 2, floats = n.work.bytes / sizeof(float);
  const uint64_t least = std::max<uint64_t>(n.rows, converts(n) ? 2 * two : two);
  require_bytes(call, n.work, least * sizeof(float), "the least for Normalize");
  return static_cast<uint32_t>(std::min<uint64_t>((converts(n) ? floats - two : floats) / two, n.rows));
}

void read_sources(LocalCall& call, const Normalize& n) {
  const uint64_t weights = uint64_t(n.columns) * dtype_size(n.weights);
  call.read(n.mean, sizeof(float), "inputMean", sizeof(float), n.rows, sizeof(float));
  call.read(n.src, uint64_t(n.columns) * dtype_size(n.dtype), "inputX", kBlockBytes, n.rows, pitch_bytes(n));
  if (n.gamma) call.read(n.gamma, weights, "gamma");
  if (n.beta) call.read(n.beta, weights, "beta");
}

void require_normalize(const LocalCall& call, const Normalize& n) {
  const uint64_t numbers = uint64_t(n.rows) * sizeof(float), all = n.rows * pitch_bytes(n);
  const uint64_t weights = uint64_t(n.columns) * dtype_size(n.weights);
  require_blocks(call, n.stride, n.dtype, "rLengthWithPadding");
  call.require(n.columns >= 1 && n.columns <= n.stride, "rLength has to be in 1..rLengthWithPadding");
  require_apart(call, {{n.dst, all, "output"}, {n.rstd, numbers, "outputRstd"}},
                {{n.src, all, "inputX"},
                 {n.mean, numbers, "mean"},
                 {n.variance, numbers, "variance"},
                 {n.gamma, n.gamma ? weights : 0, "gamma"},
                 {n.beta, n.beta ? weights : 0, "beta"}});
}

void normalize_row(const Normalize& n, uint32_t r) {
  const float mean = static_cast<const float*>(n.mean)[r];
  const float rstd = 1.0f / std::sqrt(static_cast<const float*>(n.variance)[r] + n.epsilon);
  static_cast<float*>(n.rstd)[r] = rstd;
  const uint64_t first = uint64_t(r) * n.stride;
  for (uint32_t c = 0; c < n.columns; c++) {
    float v = (load_float(n.src, first + c, n.dtype) - mean) * rstd;
    if (n.gamma) v *= load_float(n.gamma, c, n.weights);
    if (n.beta) v += load_float(n.beta, c, n.weights);
    store_float(n.dst, first + c, n.dtype, v);
  }
}

// The rows from `first` on, whose means and rstds the scalar unit reads one by one.
void normalize_piece(LocalCall& call, NormSteps& steps, const Normalize& n, uint32_t first, uint32_t rows) {
  const uint64_t all = uint64_t(rows) * n.stride;
  const double row = float_repeats(n.columns);
  steps.each({n.dtype == DType::F16 ? "Cast" : "Adds"}, all);
  steps.by_scalars(static_cast<const float*>(n.mean) + first, rows, "Duplicate", n.columns, false);
  steps.each({"Sub"}, all);
  steps.by_scalars(static_cast<const float*>(n.rstd) + first, rows, "Duplicate", n.columns, false);
  steps.each({"Mul"}, all);
  if (n.gamma) steps.add("Mul", row, rows, rows);
  if (n.beta) steps.add("Add", row, rows, rows);
  steps.each({n.dtype == DType::F16 ? "Cast" : "Adds"}, all);
  read_sources(call, n);
  call.write(n.dst, pitch_bytes(n), "output", kBlockBytes, n.rows, pitch_bytes(n));
  steps.issue();
}

void normalize_rows(LocalCall& call, const Normalize& n) {
  require_normalize(call, n);
  const uint32_t at_once = rows_at_once(call, n);
  const uint64_t temporary = std::max<uint64_t>(n.rows, 2ull * n.stride * (at_once + (converts(n) ? 1 : 0)));
  for (uint32_t r = 0; r < n.rows; r++) normalize_row(n, r);
  read_sources(call, n);
  call.read(n.variance, sizeof(float), "inputVariance", sizeof(float), n.rows, sizeof(float));
  write_numbers(call, n.rstd, n.rows, DType::F32, "outputRstd");
  call.write(n.work.begin, temporary * sizeof(float), "sharedTmpBuffer");
  NormSteps steps(call);
  steps.each({"Adds", "Duplicate", "Sqrt", "Div"}, n.rows);
  if (converts(n) && n.gamma) steps.each({"Cast"}, n.columns);
  if (converts(n) && n.beta) steps.each({"Cast"}, n.columns);
  for (uint32_t r = 0; r < n.rows; r += at_once) normalize_piece(call, steps, n, r, std::min(at_once, n.rows - r));
  if (n.columns < n.stride) {  // behind a row's end the result is of temporary memory that nobody wrote
    const uint32_t size = dtype_size(n.dtype), rest = n.stride - n.columns;
    call.core.unwritten.forget(
        {reinterpret_cast<uint64_t>(n.dst) + n.columns * size, rest * size, n.rows, pitch_bytes(n)});
  }
  leave_whole_mask(call.core);
}

}  // namespace

void normalize(const Normalize& n) {
  LocalCall call("Normalize", VNPU_PC);
  check_float(call, n.dtype);
  if (n.rows == 0) return;
  normalize_rows(call, n);
}

namespace {

// ---- LayerNorm of [A, R] ----

void require_rstd(const LocalCall& call, const LayerNormRstd& l) {
  require_normalize(call, l.n);
  require_tiling(call, l.pieces, l.n.work, "GetLayerNormNDTilingInfo");
  call.require(l.n.rows <= l.counted, "para.aLength has to be at most the tiling's, " + std::to_string(l.counted));
}

// The rest of every row becomes zero: a product with ones and zeros, in the type of the source.
void clear_rest(LocalCall& call, NormSteps& steps, const LayerNormRstd& l) {
  const Normalize& n = l.n;
  const double row = repeats_of(n.stride, dtype_size(n.dtype));
  steps.add("Duplicate", row, 1, 1, n.dtype);
  steps.add("Adds", repeats_of(n.columns, dtype_size(n.dtype)), 1, 1, n.dtype);
  steps.add("Mul", row, n.rows, 1, n.dtype);
  const uint32_t size = dtype_size(n.dtype), rest = (n.stride - n.columns) * size;
  uint8_t* const behind = static_cast<uint8_t*>(n.src) + uint64_t(n.columns) * size;
  for (uint32_t r = 0; r < n.rows; r++)
    for (uint32_t c = n.columns; c < n.stride; c++) {
      const uint64_t i = uint64_t(r) * n.stride + c;
      store_float(n.src, i, n.dtype, load_float(n.src, i, n.dtype) * 0.0f);
    }
  call.read(behind, rest, "inputX", size, n.rows, pitch_bytes(n));
  call.write(behind, rest, "inputX", size, n.rows, pitch_bytes(n));
  call.write(n.work.begin, pitch_bytes(n), "sharedTmpBuffer");
  steps.issue();
}

void statistics_steps(NormSteps& steps, const LayerNormRstd& l, uint32_t first, uint32_t rows) {
  const bool half = l.n.dtype == DType::F16;
  const uint64_t all = uint64_t(rows) * l.n.stride;
  steps.each({half ? "Cast" : "Copy", "Muls"}, all);
  steps.row_sums(rows, l.n.stride);
  steps.each({half ? "Cast" : "Copy"}, all);
  steps.by_scalars(static_cast<const float*>(l.n.mean) + first, rows, "Adds", l.n.columns, false);
  steps.each({"Mul", "Muls"}, all);
  steps.row_sums(rows, l.n.stride);
  steps.barrier();
}

}  // namespace

void layer_norm_rstd(const LayerNormRstd& l) {
  LocalCall call("LayerNorm", VNPU_PC);
  const Normalize& n = l.n;
  check_float(call, n.dtype);
  if (n.rows == 0) return;
  require_rstd(call, l);
  NormSteps steps(call);
  if (n.columns < n.stride) clear_rest(call, steps, l);
  float *const mean = const_cast<float*>(static_cast<const float*>(n.mean)), *const variance =
                                                                                 static_cast<float*>(l.n.work.begin);
  for (uint32_t r = 0; r < l.counted; r++) {
    std::vector<float> row = loaded_floats(n.src, uint64_t(r) * n.stride, n.stride, n.dtype);
    RowStatistics s = statistics_of(row, n.columns, l.reciprocal);
    for (uint32_t c = n.columns; c < n.stride; c++) {  // zeros, or what isn't a number times zero
      s.mean += row[c];
      s.variance += row[c];
    }
    mean[r] = s.mean;
    variance[r] = s.variance;
  }
  call.read(n.src, uint64_t(n.columns) * dtype_size(n.dtype), "inputX", kBlockBytes, l.counted, pitch_bytes(n));
  write_numbers(call, mean, l.counted, DType::F32, "outputMean");
  write_numbers(call, variance, l.counted, DType::F32, "sharedTmpBuffer");
  call.write(variance + l.first, uint64_t(l.pieces.end - l.first) * sizeof(float), "sharedTmpBuffer");
  const uint32_t at_once = std::max(l.pieces.piece / n.stride, 1u);
  for (uint32_t r = 0; r < l.counted; r += at_once) statistics_steps(steps, l, r, std::min(at_once, l.counted - r));
  steps.issue();
  Normalize rest = n;
  rest.variance = variance;
  rest.work = {variance + l.first, n.work.bytes - uint64_t(l.first) * sizeof(float)};
  normalize_rows(call, rest);
}

}  // namespace vnpu
