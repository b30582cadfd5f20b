// SoftmaxFlashV2: one body, with the summed cost of the vector instructions that its page names (asc-devkit), as in
// adv_compose.cpp. Half is reckoned in float and rounded at the end, the sum from what isn't rounded yet.
#include "vnpu/adv_flash.h"

#include <vector>

#include "composite.h"
#include "local_call.h"

namespace vnpu {
namespace {

uint32_t kept_bytes(const SoftmaxFlash& s, DType t) { return s.wide ? kBlockBytes : dtype_size(t); }

float load_kept(const SoftmaxFlash& s, const void* p, uint32_t row) {
  return load_float(p, uint64_t(row) * (kept_bytes(s, s.statistics) / dtype_size(s.statistics)), s.statistics);
}
void store_kept(const SoftmaxFlash& s, void* p, uint32_t row, DType t, float v) {
  if (p == nullptr) return;
  const uint32_t lanes = kept_bytes(s, t) / dtype_size(t);
  for (uint32_t i = 0; i < lanes; i++) store_float(p, uint64_t(row) * lanes + i, t, v);
}

void declare_flash(LocalCall& call, const SoftmaxFlash& s) {
  const uint32_t size = dtype_size(s.dtype);
  call.require(uint64_t(s.columns) * size % kBlockBytes == 0,
               "the last axis, " + std::to_string(s.columns) + " elements, has to be a multiple of 32 B");
  call.require(s.valid >= 1 && s.valid <= s.columns, "oriSrcK has to be in 1..srcK");
  const uint64_t bytes = uint64_t(s.rows) * s.columns * size;
  const uint64_t kept = uint64_t(s.rows) * kept_bytes(s, s.statistics);
  call.read(s.src, bytes, "srcTensor");
  if (s.update) {
    call.read(s.in_sum, kept, "inExpSumTensor");
    call.read(s.in_max, kept, "inMaxTensor");
    call.write(s.shrunk, uint64_t(s.rows) * kept_bytes(s, s.dtype), "expMaxTensor");
  }
  call.write(s.dst, bytes, "dstTensor");
  call.write(s.sum, kept, "expSumTensor");
  call.write(s.max, kept, "maxTensor");
  if (s.row_max) call.write(s.row_max, kept, "outReduceMax");
  call.write(s.work, s.work_bytes, "sharedTmpBuffer");
}

void softmax_flash_row(const SoftmaxFlash& s, uint32_t r, std::vector<float>& row) {
  const uint64_t first = uint64_t(r) * s.columns;
  for (uint32_t c = 0; c < s.columns; c++) row[c] = load_float(s.src, first + c, s.dtype);
  const float here = *std::max_element(row.begin(), row.begin() + s.valid);
  const float before = s.update ? load_kept(s, s.in_max, r) : here, max = std::max(before, here);
  float sum = 0;
  for (uint32_t c = 0; c < s.columns; c++) {  // columns that don't count take part in all but the reductions
    row[c] = std::exp(row[c] - max);
    if (c < s.valid) sum += row[c];
    store_float(s.dst, first + c, s.dtype, row[c]);
  }
  if (s.update) {
    const float shrunk = std::exp(before - max);
    sum = shrunk * load_kept(s, s.in_sum, r) + sum;
    store_kept(s, s.shrunk, r, s.dtype, shrunk);
  }
  store_kept(s, s.row_max, r, s.statistics, here);
  store_kept(s, s.max, r, s.statistics, max);
  store_kept(s, s.sum, r, s.statistics, sum);
}

// What leaves the sum where each row has a block of it.
const char* last_of(const SoftmaxFlash& s) { return !s.update ? "Brcb" : s.statistics == DType::F16 ? "Cast" : "Add"; }

// With what came before a row Max, Sub, Exp, Mul and Add of what is kept, in half with conversions.
void add_update(Composite& cost, const SoftmaxFlash& s, double kept) {
  const bool halves = s.statistics == DType::F16;
  for (const char* instruction : {"Max", "Sub", "Exp", "Mul"}) cost.add(instruction, kept);
  if (!s.wide || halves) cost.add("Add", kept);
  if (s.dtype == DType::F16) cost.add("Cast", kept, !halves ? 1 : s.wide ? 4 : 5);
}

// Row maximum, Sub, Exp, row sum, with each row's number brought to a block for the Sub, and the update. Half is
// converted to float and back. Without last_of() where there is one.
Work flash_cost(const SoftmaxFlash& s, Core& core) {
  const double all = repeats_of(uint64_t(s.rows) * s.columns, 4), rows = repeats_of(uint64_t(s.rows) * kBlockBytes, 1);
  const double kept = s.wide ? rows : repeats_of(s.rows, 4);
  Composite cost(core);
  for (const char* instruction : {"ReduceDataBlock", "ReduceDataBlockSum"}) cost.add(instruction, all);
  for (const char* instruction : {"ReduceRepeat", "ReduceRepeatSum"}) cost.add(instruction, rows);
  cost.add("Brcb", rows, s.wide && s.update ? 2 : 1);
  for (const char* instruction : {"Sub", "Exp"}) cost.add(instruction, all);
  if (s.update) add_update(cost, s, kept);
  if (s.row_max) cost.add("Copy", kept);
  if (s.dtype == DType::F16) cost.add("Cast", all, 2);
  return cost.work();
}

}  // namespace

void softmax_flash(const SoftmaxFlash& s) {
  LocalCall call("SoftmaxFlashV2", VNPU_PC);
  check_float(call, s.dtype);
  check_float(call, s.statistics);
  if (s.rows == 0 || s.columns == 0) return;
  declare_flash(call, s);
  std::vector<float> row(s.columns);
  for (uint32_t r = 0; r < s.rows; r++) softmax_flash_row(s, r, row);
  call.issue(flash_cost(s, call.core));
  if (!s.wide) return;
  // Behind what leaves anything but the sum there is a barrier in all forms with blocks, and behind the last
  // instruction none (asc-devkit, impl/adv_api/detail/activation/softmax/membase).
  const uint32_t kept = s.rows * kBlockBytes;
  call.core.barrier(Pipe::V);
  call.read(s.sum, kept, "expSumTensor");
  call.write(s.sum, kept, "expSumTensor");
  call.issue(last_of(s), DType::F32, repeats_of(kept, 1));
}

}  // namespace vnpu
