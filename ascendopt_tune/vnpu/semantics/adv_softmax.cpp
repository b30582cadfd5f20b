// SoftmaxGrad, SoftmaxGradFront, SimpleSoftMax, SoftmaxFlash and AdjustSoftMaxRes: values by the documented formulas in
// float, rounded at the end; time as the vector instructions and barriers that asc-devkit's implementation issues
// (impl/adv_api/detail/activation/softmax), of a sum and of a number of each row brought to all of it as in basic
// blocks.
#include "vnpu/adv_softmax.h"

#include <cmath>
#include <string_view>

#include "norm_steps.h"

namespace vnpu {
namespace {

uint64_t row_bytes(const SoftmaxRows& r) { return uint64_t(r.columns) * dtype_size(r.dtype); }

void require_rows(const LocalCall& call, const SoftmaxRows& r) {
  require_blocks(call, r.columns, r.dtype, "the last axis");
  call.require(r.valid >= 1 && r.valid <= r.columns, "oriSrcK has to be in 1..srcK");
  require_bytes(call, r.work, uint64_t(std::max(r.piece, 1u)) * r.row_floats * sizeof(float),
                "what the tiling's pieces take");
}

void read_rows(LocalCall& call, const SoftmaxRows& r, const void* p, const char* name) {
  call.read(p, row_bytes(r), name, kBlockBytes, r.rows, row_bytes(r));
}
void write_rows(LocalCall& call, const SoftmaxRows& r, void* p, const char* name) {
  call.write(p, row_bytes(r), name, kBlockBytes, r.rows, row_bytes(r));
}
void read_blocks(LocalCall& call, const SoftmaxRows& r, const void* p, const char* name) {
  call.read(p, kBlockBytes, name, kBlockBytes, r.rows, kBlockBytes);
}
void write_blocks(LocalCall& call, const SoftmaxRows& r, void* p, const char* name) {
  call.write(p, kBlockBytes, name, kBlockBytes, r.rows, kBlockBytes);
}
void write_work(LocalCall& call, const SoftmaxRows& r) {
  if (r.row_floats == 0) return;
  call.write(r.work.begin, uint64_t(std::min(r.piece, r.rows)) * r.row_floats * sizeof(float), "sharedTmpBuffer");
}

float of_block(const void* p, uint32_t row, DType t) {
  return load_float(p, uint64_t(row) * (kBlockBytes / dtype_size(t)), t);
}
void to_block(void* p, uint32_t row, DType t, float v) {
  const uint32_t lanes = kBlockBytes / dtype_size(t);
  for (uint32_t i = 0; i < lanes; i++) store_float(p, uint64_t(row) * lanes + i, t, v);
}

// A number of each of n rows, in a block: repeats onto the first (`fold`), then twice inside it, then to the block.
void reduce_to_blocks(NormSteps& steps, const char* fold, uint32_t n, uint32_t columns) {
  const uint32_t parts = (columns + kRepeatFloats - 1) / kRepeatFloats;
  const char* const blocks = std::string_view(fold) == "Add" ? "ReduceDataBlockSum" : "ReduceDataBlock";
  steps.add(fold, n, parts - 1, parts - 1);
  steps.add(blocks, n);
  steps.add(blocks, (n + kBlockFloats - 1) / kBlockFloats);
  steps.add("Brcb", (n + kBlockFloats - 1) / kBlockFloats);
}
void blocks_to_rows(NormSteps& steps, uint32_t n, uint32_t columns) {
  steps.add("Copy", n, (columns + kRepeatFloats - 1) / kRepeatFloats);
}

// The instruction that leaves the result, which half converts: no barrier stands behind it.
void leave_result(NormSteps& steps, const char* instruction, uint64_t floats, bool half) {
  steps.add(instruction, float_repeats(floats), 1, half);
  if (half) steps.add("Cast", float_repeats(floats), 1, 0);
}

// The pieces of all rows, one after another.
template <typename Piece>
void in_pieces(const SoftmaxRows& r, Piece piece) {
  const uint32_t at_once = std::max(r.piece, 1u);
  for (uint32_t i = 0; i < r.rows; i += at_once) piece(std::min(at_once, r.rows - i));
}

// A call on rows: what it touches is declared for the computation and once more with the step that leaves the result.
template <typename Declare, typename Row, typename Steps>
void on_rows(LocalCall& call, const SoftmaxRows& r, Declare declare, Row row, Steps steps_of) {
  check_float(call, r.dtype);
  if (r.rows == 0 || r.columns == 0) return;
  require_rows(call, r);
  declare();
  for (uint32_t i = 0; i < r.rows; i++) row(i);
  NormSteps steps(call);
  in_pieces(r, [&](uint32_t n) { steps_of(steps, n); });
  declare();
  steps.issue();
  leave_whole_mask(call.core);
}

// ---- SoftmaxGrad ----

void softmax_grad_row(const SoftmaxGrad& s, uint32_t row) {
  const SoftmaxRows& r = s.r;
  const uint64_t first = uint64_t(row) * r.columns;
  const std::vector<float> grad = loaded_floats(s.grad, first, r.columns, r.dtype);
  const std::vector<float> src = loaded_floats(s.src, first, r.columns, r.dtype);
  std::vector<float> products(r.valid);
  for (uint32_t c = 0; c < r.valid; c++) products[c] = grad[c] * src[c];
  const float sum = folded_sum(products.data(), r.valid);
  if (s.front) return to_block(s.dst, row, r.dtype, sum);
  for (uint32_t c = 0; c < r.columns; c++) store_float(s.dst, first + c, r.dtype, (grad[c] - sum) * src[c]);
}

void softmax_grad_steps(NormSteps& steps, const SoftmaxGrad& s, uint32_t n) {
  const uint64_t all = uint64_t(n) * s.r.columns;
  const bool half = s.r.dtype == DType::F16;
  if (half) steps.add("Cast", float_repeats(all), 2);
  steps.each({"Mul"}, all);
  reduce_to_blocks(steps, "Add", n, s.r.columns);
  if (s.front) {
    if (half) steps.add("Cast", float_repeats(uint64_t(n) * kBlockBytes / dtype_size(DType::F16)), 1, 0);
    return;
  }
  blocks_to_rows(steps, n, s.r.columns);
  steps.each({"Sub"}, all);
  leave_result(steps, "Mul", all, half);
}

}  // namespace

namespace {

void declare_softmax_grad(LocalCall& call, const SoftmaxGrad& s) {
  read_rows(call, s.r, s.grad, "gradTensor");
  read_rows(call, s.r, s.src, "srcTensor");
  if (s.front)
    write_blocks(call, s.r, s.dst, "dstTensor");
  else
    write_rows(call, s.r, s.dst, "dstTensor");
  write_work(call, s.r);
}
void declare_simple_softmax(LocalCall& call, const SimpleSoftmax& s) {
  read_rows(call, s.r, s.src, "srcTensor");
  read_blocks(call, s.r, s.sum, "inSumTensor");
  read_blocks(call, s.r, s.max, "inMaxTensor");
  write_rows(call, s.r, s.dst, "dstTensor");
  write_work(call, s.r);
}
void declare_softmax_update(LocalCall& call, const SoftmaxUpdate& s) {
  read_rows(call, s.r, s.src, "srcTensor");
  read_blocks(call, s.r, s.in_sum, "inSumTensor");
  read_blocks(call, s.r, s.in_max, "inMaxTensor");
  write_rows(call, s.r, s.dst, "dstTensor");
  write_blocks(call, s.r, s.sum, "sumTensor");
  write_blocks(call, s.r, s.max, "maxTensor");
  write_blocks(call, s.r, s.shrunk, "expMaxTensor");
  write_work(call, s.r);
}

}  // namespace

void softmax_grad(const SoftmaxGrad& s, const char* api) {
  LocalCall call(api, VNPU_PC);
  on_rows(
      call, s.r, [&] { declare_softmax_grad(call, s); }, [&](uint32_t row) { softmax_grad_row(s, row); },
      [&](NormSteps& steps, uint32_t n) { softmax_grad_steps(steps, s, n); });
}

void simple_softmax(const SimpleSoftmax& s) {
  LocalCall call("SimpleSoftMax", VNPU_PC);
  check_float(call, s.statistics);
  const auto row = [&](uint32_t at) {
    const float max = of_block(s.max, at, s.statistics), sum = of_block(s.sum, at, s.statistics);
    for (uint64_t i = uint64_t(at) * s.r.columns, end = i + s.r.columns; i < end; i++)
      store_float(s.dst, i, s.r.dtype, std::exp(load_float(s.src, i, s.r.dtype) - max) / sum);
  };
  const bool half = s.r.dtype == DType::F16;
  const auto steps_of = [&](NormSteps& steps, uint32_t n) {
    const uint64_t all = uint64_t(n) * s.r.columns;
    if (half) steps.each({"Cast"}, all);
    if (s.statistics == DType::F16) steps.add("Cast", float_repeats(uint64_t(n) * kBlockFloats), 2);
    steps.each({"Sub", "Exp"}, all);  // a row's block is read by each of its repeats
    leave_result(steps, "Div", all, half);
  };
  on_rows(call, s.r, [&] { declare_simple_softmax(call, s); }, row, steps_of);
}

namespace {

// ---- SoftmaxFlash with an update ----

void softmax_update_row(const SoftmaxUpdate& s, uint32_t row) {
  const SoftmaxRows& r = s.r;
  const uint64_t first = uint64_t(row) * r.columns;
  std::vector<float> v = loaded_floats(s.src, first, r.columns, r.dtype);
  const float here = *std::max_element(v.begin(), v.begin() + r.valid), before = of_block(s.in_max, row, s.statistics);
  const float max = std::max(here, before), grown = std::exp(here - max);
  for (float& x : v) x = std::exp(x - here);
  const float old = std::exp(before - max) * of_block(s.in_sum, row, s.statistics);
  const float sum = old + grown * folded_sum(v.data(), r.valid);
  for (uint32_t c = 0; c < r.columns; c++) store_float(s.dst, first + c, r.dtype, v[c] * (grown / sum));
  to_block(s.max, row, s.statistics, max);
  to_block(s.sum, row, s.statistics, sum);
  to_block(s.shrunk, row, r.dtype, old / sum);
}

void softmax_update_steps(NormSteps& steps, const SoftmaxUpdate& s, uint32_t n) {
  const uint64_t all = uint64_t(n) * s.r.columns, kept = uint64_t(n) * (kBlockBytes / dtype_size(s.r.dtype));
  const bool half = s.r.dtype == DType::F16;
  const char* const convert = s.statistics == DType::F16 ? "Cast" : "Copy";
  if (half) steps.each({"Cast"}, all);
  reduce_to_blocks(steps, "Max", n, s.r.columns);
  blocks_to_rows(steps, n, s.r.columns);
  steps.each({"Sub", "Exp"}, all);
  reduce_to_blocks(steps, "Add", n, s.r.columns);
  steps.each({convert, "Max", convert, "Sub", "Exp", "Sub", "Exp", convert, "Mul", "Mul", "Add", "Div"}, kept);
  if (half) steps.each({"Cast"}, kept);
  if (s.statistics == DType::F16) steps.each({"Cast"}, kept);
  steps.each({"Div"}, kept);
  blocks_to_rows(steps, n, s.r.columns);
  leave_result(steps, "Mul", all, half);
}

}  // namespace

void softmax_update(const SoftmaxUpdate& s) {
  LocalCall call("SoftmaxFlash", VNPU_PC);
  check_float(call, s.statistics);
  on_rows(
      call, s.r, [&] { declare_softmax_update(call, s); }, [&](uint32_t row) { softmax_update_row(s, row); },
      [&](NormSteps& steps, uint32_t n) { softmax_update_steps(steps, s, n); });
}

bool adjust_softmax(const AdjustSoftmax& a) {
  LocalCall call("AdjustSoftMaxRes", VNPU_PC);
  check_float(call, a.dtype);
  check_float(call, a.statistics);
  require_blocks(call, a.columns, a.dtype, "the last axis");
  const uint64_t row = uint64_t(a.columns) * dtype_size(a.dtype);
  bool any = false;
  call.order(Pipe::V, Pipe::S);
  for (uint32_t r = 0; r < a.rows; r++) {
    const uint64_t i = uint64_t(r) * a.step;
    const bool same = a.statistics == DType::F32
                          ? call.load(static_cast<const uint32_t*>(a.max) + i) == a.from
                          : call.load(static_cast<const uint16_t*>(a.max) + i) == static_cast<uint16_t>(a.from);
    if (!same) continue;
    any = true;
    for (uint32_t c = 0; c < a.columns; c++) store_float(a.dst, uint64_t(r) * a.columns + c, a.dtype, a.to);
    call.write(static_cast<uint8_t*>(a.dst) + r * row, row, "softMaxRes");
    call.issue("Duplicate", a.dtype, repeats_of(a.columns, dtype_size(a.dtype)));
  }
  leave_whole_mask(call.core);
  return any;
}

}  // namespace vnpu
