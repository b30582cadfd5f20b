// WelfordUpdate and WelfordFinalize: as adv_norm.cpp.
#include "norm_steps.h"

namespace vnpu {
namespace {

// ---- WelfordUpdate ----

// Temporary memory is cut into as many repeats for each of so many values.
uint32_t repeats_kept(const WelfordUpdate& w) { return w.dtype == DType::F16 ? 3 : w.reuse ? 1 : 2; }

void declare_welford_update(LocalCall& call, const WelfordUpdate& w, uint64_t temporary) {
  const uint64_t computed = uint64_t(w.compute) * sizeof(float), size = dtype_size(w.dtype);
  const uint64_t bytes = w.in_place ? uint64_t(w.columns) * sizeof(float) : computed;
  require_apart(
      call,
      {{w.mean, bytes, "outputMean"},
       {w.variance, bytes, "outputVariance"},
       {w.work.begin, temporary, "sharedTmpBuffer"}},
      {{w.in_mean, bytes, "inputMean"}, {w.in_variance, bytes, "inputVariance"}, {w.src, w.compute * size, "inputX"}});
  call.read(w.src, w.compute * size, "inputX");
  call.read(w.in_mean, bytes, "inputMean");
  call.read(w.in_variance, bytes, "inputVariance");
  call.write(w.mean, bytes, "outputMean");
  call.write(w.variance, bytes, "outputVariance");
  call.write(w.work.begin, temporary, "sharedTmpBuffer");
  if (w.reuse && w.dtype == DType::F32) call.write(w.src, computed, "inputX");
}

void update_column(const WelfordUpdate& w, uint32_t c) {
  float *const mean = static_cast<float*>(w.mean), *const variance = static_cast<float*>(w.variance);
  const float before = static_cast<const float*>(w.in_mean)[c], x = load_float(w.src, c, w.dtype), d = x - before;
  mean[c] = d * w.reciprocal + before;
  variance[c] = d * (x - mean[c]) + static_cast<const float*>(w.in_variance)[c];
  if (w.reuse && w.dtype == DType::F32) store_float(w.src, c, w.dtype, d);
}

void require_update(const LocalCall& call, const WelfordUpdate& w) {
  call.require(w.rows == 1, "para.rnLength has to be 1");
  require_blocks(call, w.columns, w.dtype, "para.abLength");
  call.require(w.compute >= 1 && w.compute <= w.columns, "para.abComputeLength has to be in 1..para.abLength");
  require_bytes(call, w.work, repeats_kept(w) * kRepeatBytes, "the least");
}

}  // namespace

void welford_update(const WelfordUpdate& w) {
  LocalCall call("WelfordUpdate", VNPU_PC);
  check_float(call, w.dtype);
  require_update(call, w);
  const uint64_t repeats = w.work.bytes / (repeats_kept(w) * kRepeatBytes);
  const uint64_t at_once = std::min<uint64_t>(repeats * kRepeatFloats, w.compute);
  const auto temporary = static_cast<uint64_t>(float_repeats(at_once)) * kRepeatBytes * repeats_kept(w);
  declare_welford_update(call, w, temporary);
  NormSteps steps(call);
  if (w.in_place && w.compute < w.columns) {
    const uint32_t rest = (w.columns - w.compute + kBlockFloats - 1) / kBlockFloats * kBlockFloats;
    for (uint32_t c = w.columns - rest; c < w.columns; c++) {
      static_cast<float*>(w.mean)[c] = static_cast<const float*>(w.in_mean)[c];
      static_cast<float*>(w.variance)[c] = static_cast<const float*>(w.in_variance)[c];
    }
    steps.add("Copy", float_repeats(rest), 2);
  }
  for (uint32_t c = 0; c < w.compute; c++) update_column(w, c);
  for (uint64_t c = 0; c < w.compute; c += at_once) {
    const uint64_t n = std::min<uint64_t>(at_once, w.compute - c);
    steps.barrier();
    if (w.dtype == DType::F16) steps.add("Cast", float_repeats(n), 1, 0);
    steps.each({"Sub", "Muls", "Add", "Sub"}, n);
    if (w.reuse && w.dtype == DType::F32) steps.each({"Sub"}, n);
    steps.each({"Mul", "Add"}, n);
  }
  declare_welford_update(call, w, temporary);
  steps.issue();
  leave_whole_mask(call.core);
}

namespace {

// ---- WelfordFinalize ----

constexpr uint32_t kLeastFloats = 4 * kRepeatFloats;

bool has_tail(const WelfordFinalize& w) { return w.tail > 0 && w.tail_count > 0; }

void require_finalize(const LocalCall& call, const WelfordFinalize& w) {
  call.require(w.columns > 0, "para.abLength has to be above 0");
  require_blocks(call, w.columns, DType::F32, "para.abLength");
  call.require(uint64_t(w.head) + w.tail == w.columns,
               "para.headCountLength and para.tailCountLength have to be para.abLength together");
  call.require(w.tail_count > 0 || w.tail == 0, "para.tailCountLength has to be 0 where para.tailCount is");
  require_bytes(call, w.work, kLeastFloats * sizeof(float), "the least");
}

void declare_welford_finalize(LocalCall& call, const WelfordFinalize& w, uint64_t temporary) {
  const uint64_t bytes = uint64_t(w.columns) * sizeof(float), counts = w.counts ? bytes : 0;
  require_apart(
      call,
      {{w.mean, kBlockBytes, "outputMean"},
       {w.variance, kBlockBytes, "outputVariance"},
       {w.work.begin, temporary, "sharedTmpBuffer"}},
      {{w.in_mean, bytes, "inputMean"}, {w.in_variance, bytes, "inputVariance"}, {w.counts, counts, "counts"}});
  call.read(w.in_mean, bytes, "inputMean");
  call.read(w.in_variance, bytes, "inputVariance");
  if (w.counts) call.read(w.counts, counts, "counts");
  call.write(w.mean, kBlockBytes, "outputMean");
  call.write(w.variance, kBlockBytes, "outputVariance");
  call.write(w.work.begin, temporary, "sharedTmpBuffer");
}

// What column c counts in the mean, and in the variance, times the reciprocal of all.
float weight_of(const WelfordFinalize& w, uint32_t c) {
  if (w.counts) return static_cast<float>(static_cast<const int32_t*>(w.counts)[c]);
  if (!has_tail(w)) return static_cast<float>(w.rounds);
  return static_cast<float>(c < w.head ? w.head_count : w.tail_count);
}

void finalize(const WelfordFinalize& w) {
  const bool plain = !w.counts && !has_tail(w);
  const float* const means = static_cast<const float*>(w.in_mean);
  std::vector<float> v(w.columns);
  for (uint32_t c = 0; c < w.columns; c++)
    v[c] = plain ? means[c] * w.of_columns : means[c] * weight_of(w, c) * w.of_all;
  const float mean = folded_sum(v.data(), w.columns);
  for (uint32_t c = 0; c < w.columns; c++) {
    const float d = means[c] - mean;
    v[c] = (d * d * weight_of(w, c) + static_cast<const float*>(w.in_variance)[c]) * w.of_all;
  }
  std::fill_n(static_cast<float*>(w.mean), kBlockFloats, 0.0f);
  std::fill_n(static_cast<float*>(w.variance), kBlockFloats, 0.0f);
  *static_cast<float*>(w.mean) = mean;
  *static_cast<float*>(w.variance) = folded_sum(v.data(), w.columns);
}

// The weights of a piece of n columns, whose first `head` have one of their own.
void weigh(NormSteps& steps, const WelfordFinalize& w, uint32_t n, uint32_t head) {
  if (w.counts) return steps.each({"Cast", "Mul"}, n);
  steps.each({"Muls"}, n);
  if (has_tail(w) && head) steps.each({"Muls"}, head);
}

void piece_steps(NormSteps& steps, const WelfordFinalize& w, uint32_t n, uint32_t head, bool variance) {
  if (variance) {
    steps.each({"Adds", "Adds"}, 1);
    steps.broadcast_rows(1, n);
    steps.each({"Sub", "Mul"}, n);
  }
  if (variance || w.counts || has_tail(w)) weigh(steps, w, n, head);
  if (variance) steps.each({"Add"}, n);
  steps.each({"Muls"}, n);
  steps.row_sums(1, n);
  steps.barrier();
}

}  // namespace

void welford_finalize(const WelfordFinalize& w) {
  LocalCall call("WelfordFinalize", VNPU_PC);
  require_finalize(call, w);
  const uint64_t repeats = (w.work.bytes / sizeof(float) - 2 * kRepeatFloats) / (2 * kRepeatFloats);
  const auto at_once = static_cast<uint32_t>(
      std::min<uint64_t>(repeats * kRepeatFloats, (w.columns + kRepeatFloats - 1) / kRepeatFloats * kRepeatFloats));
  const uint64_t temporary = (2ull * kRepeatFloats + 2 * at_once) * sizeof(float);
  declare_welford_finalize(call, w, temporary);
  finalize(w);
  NormSteps steps(call);
  for (const bool variance : {false, true}) {
    uint32_t kept = 0;  // sums of pieces
    for (uint32_t c = 0; c < w.columns; c += at_once) {
      const uint32_t n = std::min(at_once, w.columns - c), head = c < w.head ? std::min(n, w.head - c) : 0;
      piece_steps(steps, w, n, head, variance);
      if (++kept == kRepeatFloats) {
        steps.add("ReduceRepeatSum", 1);
        kept = 1;
      }
    }
    steps.add("ReduceRepeatSum", 1);
  }
  steps.add("Adds", 1, 2);
  steps.add("Duplicate", 1, 2, 2);
  declare_welford_finalize(call, w, temporary);
  steps.issue();
  leave_whole_mask(call.core);
}

}  // namespace vnpu
