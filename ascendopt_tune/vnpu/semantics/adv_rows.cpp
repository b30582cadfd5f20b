// Reductions along an axis, RmsNorm, CumSum: one body each, with the summed cost of the vector instructions they
// consist of (asc-devkit, implementation notes of the API pages; throughputs of arch 2201), as in adv_compose.cpp.
#include "vnpu/adv_rows.h"

#include <vector>

#include "composite.h"
#include "local_call.h"
#include "tree_sum.h"

namespace vnpu {
namespace {

float folded(Fold fold, float a, float b) {
  switch (fold) {
    case Fold::Max:
      return std::max(a, b);
    case Fold::Min:
      return std::min(a, b);
    case Fold::Sum:
      return a + b;
    default:
      return a * b;
  }
}

// The largest power of two below n (1 for 1): the upper part of n is folded onto so many.
uint32_t lower_part(uint32_t n) {
  uint32_t k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}

// Folds n pieces of `length` values each, which lie `stride` apart, onto the first one.
void fold_all(Fold fold, std::vector<float>& v, uint32_t n, uint32_t length, uint32_t stride) {
  for (; n > 1; n = lower_part(n)) {
    const uint32_t k = lower_part(n);
    for (uint32_t i = k; i < n; i++)
      for (uint32_t j = 0; j < length; j++)
        v[(i - k) * stride + j] = folded(fold, v[(i - k) * stride + j], v[i * stride + j]);
  }
}

}  // namespace

namespace {

std::vector<float> loaded(const AxisReduction& r) {
  std::vector<float> v(uint64_t(r.rows) * r.stride);
  for (uint64_t i = 0; i < v.size(); i++) v[i] = load_float(r.src, i, r.dtype);
  return v;
}

// All rows onto the first; `v` is left with what the folding left in them.
const char* instruction_of(Fold fold) {
  switch (fold) {
    case Fold::Sum:
      return "Add";
    case Fold::Max:
      return "Max";
    case Fold::Min:
      return "Min";
    default:
      return "Mul";
  }
}

void reduce_columns(Fold fold, const AxisReduction& r, std::vector<float>& v, Composite& cost) {
  const uint32_t size = dtype_size(r.dtype);
  fold_all(fold, v, r.rows, r.columns, r.stride);
  for (uint32_t j = 0; j < r.columns; j++) store_float(r.dst, j, r.dtype, v[j]);
  for (uint32_t n = r.rows; n > 1; n = lower_part(n))
    cost.add(instruction_of(fold), repeats_of((n - lower_part(n)) * r.stride, size));
  cost.add("Copy", repeats_of(r.stride, size));
}

void reduce_rows(Fold fold, const AxisReduction& r, const std::vector<float>& v, Composite& cost) {
  for (uint32_t i = 0; i < r.rows; i++) {
    std::vector<float> row(v.begin() + uint64_t(i) * r.stride, v.begin() + uint64_t(i) * r.stride + r.columns);
    fold_all(fold, row, r.columns, 1, 1);
    store_float(r.dst, i, r.dtype, row[0]);
  }
  // Repeats of all rows onto one repeat each, then inside it: by a reduction, or by folding where there is none.
  const uint32_t lanes = kRepeatBytes / dtype_size(r.dtype), repeats = (r.columns + lanes - 1) / lanes;
  cost.add(instruction_of(fold), r.rows, repeats - 1);
  if (fold == Fold::Prod)
    for (uint32_t n = std::min(lanes, r.columns); n > 1; n = lower_part(n)) cost.add("Mul", r.rows, r.rows);
  else
    cost.add(fold == Fold::Sum ? "ReduceRepeatSum" : "ReduceRepeat", r.rows);
}

}  // namespace

namespace {
// Whether the next vector instruction is ordered behind it. Along the last axis all but sums end with an instruction
// (asc-devkit, reduce_common_util_v220_impl.h, reduce_sum_v220_impl.h, reduce_prod_v220_impl.h).
bool ends_with_barrier(Fold fold, bool first_axis) { return first_axis || fold == Fold::Sum; }
}  // namespace

void reduce_axis(Fold fold, const AxisReduction& r, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_float(call, r.dtype);
  call.require(r.rows >= 1 && r.columns >= 1, "both axes of srcShape have to be at least 1");
  const uint32_t size = dtype_size(r.dtype);
  const uint64_t row_bytes = uint64_t(r.stride) * size;
  call.read(r.src, uint64_t(r.columns) * size, "source", kBlockBytes, r.rows, row_bytes);
  call.write(r.dst, uint64_t(r.first_axis ? r.columns : r.rows) * size, "destination");
  const uint32_t kept = r.first_axis ? lower_part(r.rows) : r.rows;
  if (r.reuse)
    call.write(r.src, kept * row_bytes, "source");
  else if (r.work && r.first_axis && r.rows > 1)
    call.write(r.work, kept * row_bytes, "sharedTmpBuffer");
  std::vector<float> v = loaded(r);
  Composite cost(call.core);
  if (r.first_axis)
    reduce_columns(fold, r, v, cost);
  else
    reduce_rows(fold, r, v, cost);
  if (r.reuse)
    for (uint64_t i = 0; i < uint64_t(kept) * r.stride; i++) store_float(r.src, i, r.dtype, v[i]);
  call.issue(cost.work());
  if (ends_with_barrier(fold, r.first_axis)) call.core.barrier(Pipe::V);
  leave_whole_mask(call.core);
}

void rms_norm(const RmsNorm& n) {
  LocalCall call("RmsNorm", VNPU_PC);
  check_float(call, n.dtype);
  if (n.rows == 0 || n.columns == 0) return;
  const uint32_t size = dtype_size(n.dtype);
  call.require(uint64_t(n.columns) * size % kBlockBytes == 0,
               "the last axis, " + std::to_string(n.columns) + " elements, has to be a multiple of 32 B");
  const uint64_t bytes = uint64_t(n.rows) * n.columns * size;
  call.read(n.src, bytes, "source");
  call.read(n.gamma, uint64_t(n.columns) * size, "gammaLocal");
  call.write(n.dst, bytes, "destination");
  if (n.work) call.write(n.work, uint64_t(n.columns) * sizeof(float), "sharedTmpBuffer");
  std::vector<float> squares(n.columns + kRepeatBytes / sizeof(float));
  for (uint32_t r = 0; r < n.rows; r++) {
    const uint64_t first = uint64_t(r) * n.columns;
    for (uint32_t c = 0; c < n.columns; c++) {
      const float x = load_float(n.src, first + c, n.dtype);
      squares[c] = x * x;
    }
    const float rms = std::sqrt(sum_of<float>(squares, n.columns) * n.reciprocal + n.epsilon);
    for (uint32_t c = 0; c < n.columns; c++) {
      const float x = load_float(n.src, first + c, n.dtype) / rms;
      store_float(n.dst, first + c, n.dtype, x * load_float(n.gamma, c, n.dtype));
    }
  }
  // Mul, row sum, Muls, Adds, Sqrt, Brcb, Div, Mul; half is converted to float and back.
  const double all = repeats_of(uint64_t(n.rows) * n.columns, 4), rows = repeats_of(uint64_t(n.rows) * kBlockBytes, 1);
  Composite cost(call.core);
  cost.add("Mul", all, 2);
  cost.add("ReduceRepeatSum", all);
  for (const char* instruction : {"Muls", "Adds", "Sqrt", "Brcb"}) cost.add(instruction, rows);
  cost.add("Div", all);
  if (n.dtype == DType::F16) cost.add("Cast", all, 3);
  call.issue(cost.work());
  call.core.barrier(Pipe::V);
  leave_whole_mask(call.core);
}

void cum_sum(const CumSum& c) {
  LocalCall call("CumSum", VNPU_PC);
  check_float(call, c.dtype);
  const uint32_t size = dtype_size(c.dtype);
  call.require(c.outer >= 1 && c.inner >= 1, "cumSumInfo.outter and inner have to be above 0");
  call.require(uint64_t(c.inner) * size % kBlockBytes == 0,
               "cumSumInfo.inner * sizeof(T) has to be a multiple of 32 B");
  const uint64_t count = uint64_t(c.outer) * c.inner;
  call.read(c.src, count * size, "source");
  call.write(c.dst, count * size, "destination");
  if (c.last) call.write(c.last, uint64_t(c.last_axis ? c.outer : c.inner) * size, "lastRowTensor");
  const uint64_t lines = c.last_axis ? c.outer : c.inner, length = c.last_axis ? c.inner : c.outer;
  const uint64_t line = c.last_axis ? c.inner : 1, step = c.last_axis ? 1 : c.inner;
  for (uint64_t i = 0; i < lines; i++) {
    float sum = 0;
    for (uint64_t j = 0; j < length; j++) {
      sum = j ? sum + load_float(c.src, i * line + j * step, c.dtype) : load_float(c.src, i * line, c.dtype);
      store_float(c.dst, i * line + j * step, c.dtype, sum);
    }
    if (c.last) store_float(c.last, i, c.dtype, sum);
  }
  // A row added to the one before it; along the last axis on sixteen rows at a time that are transposed there and back.
  Composite cost(call.core);
  if (c.last_axis) {
    const uint64_t groups = (c.outer + 15) / 16;
    // Two units of its row for 256 bytes.
    const double repeats = groups * repeats_of(uint64_t(16) * c.inner, size);
    cost.add_heads("TransDataTo5HD", 2 * std::ceil(repeats / 255), 2 * 2 * repeats);
    cost.add("Add", 1, static_cast<double>(groups * c.inner));
  } else {
    cost.add("Add", repeats_of(c.inner, 4), c.outer);
  }
  if (c.dtype == DType::F16) cost.add("Cast", repeats_of(count, 4), 2);
  call.issue(cost.work());
}

}  // namespace vnpu
