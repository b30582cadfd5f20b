// ReduceSum, ReduceMax, ReduceMin: composed of reductions per repeat as the AscendC reference describes them, with the
// same synchronization: results that the scalar unit fetches are ordered before and behind by flags.
#include "reduce_steps.h"

namespace vnpu {
namespace {

constexpr uint32_t kMaxRepeats = 255;

uint8_t* bytes(void* p, uint64_t offset) { return static_cast<uint8_t*>(p) + offset; }
const void* bytes(const void* p, uint64_t offset) { return static_cast<const uint8_t*>(p) + offset; }

// Copies one element by the scalar unit, and orders it: the vector unit before it, vector and MTE3 after it.
void copy_result(LocalCall& call, void* dst, const void* src, uint32_t size) {
  call.order(Pipe::V, Pipe::S);
  if (size == 2)
    call.store(static_cast<uint16_t*>(dst), call.load(static_cast<const uint16_t*>(src)));
  else
    call.store(static_cast<uint32_t*>(dst), call.load(static_cast<const uint32_t*>(src)));
  call.order(Pipe::S, Pipe::V);
  call.order(Pipe::S, Pipe::MTE3);
}

Lanes lanes_of(uint32_t n) {
  Lanes l;
  l.repeat = 1;
  l.mask[0] = n >= 64 ? ~0ull : (1ull << n) - 1;
  l.mask[1] = n <= 64 ? 0 : n >= 128 ? ~0ull : (1ull << (n - 64)) - 1;
  return l;
}

// `r` in pieces of at most 255 repeats; results follow each other at r.dst.
void all_repeats(LocalCall& call, ReduceOp op, Reduction r, Lanes lanes) {
  uint32_t total = lanes.repeat, size = dtype_size(r.dtype) * (op == ReduceOp::Sum ? 1 : 2);
  for (uint32_t done = 0; done < total; done += kMaxRepeats) {
    if (done) call.core.barrier(Pipe::V);  // neighbouring results share a 32-byte block
    lanes.repeat = std::min(kMaxRepeats, total - done);
    reduce_repeats(call, op, r, lanes, ReduceResult::ValueIndex);
    r.dst = bytes(r.dst, uint64_t(kMaxRepeats) * size);
    r.src = bytes(r.src, uint64_t(kMaxRepeats) * r.src_rep_stride * kBlockBytes);
  }
}

// Even lanes of `pairs` pairs (value, index): what a further step of a maximum looks at.
Lanes even_lanes(uint32_t pairs) {
  Lanes l = lanes_of(2 * pairs);
  l.mask[0] &= 0x5555555555555555ull;
  l.mask[1] &= 0x5555555555555555ull;
  return l;
}

// Where a single pair was left, the device folds once more (dav_c220, ReduceImplThirdStepNoIndex).
void fold_pair(LocalCall& call, ReduceOp op, Reduction r, void* work, bool left) {
  if (!left) return;
  call.core.barrier(Pipe::V);
  r.src_blk_stride = r.dst_rep_stride = 1;
  r.src = r.dst = work;
  reduce_repeats(call, op, r, even_lanes(1), ReduceResult::ValueIndex);
}

// One result of `lanes.repeat` repeats. With an index every step's results are kept, because the index is recovered
// through them; without, steps work in place (AscendC reference, ReduceMax, size of sharedTmpBuffer).
void extreme_of(LocalCall& call, ReduceOp op, const Reduction& r, void* work, const Lanes& lanes, bool index) {
  uint32_t size = dtype_size(r.dtype), pair = 2 * size, per_step = kRepeatBytes / pair;
  Reduction step = r;
  step.dst_rep_stride = 1;
  if (lanes.repeat == 1) {
    if (!index) step.dst = work;
    reduce_repeats(call, op, step, lanes, ReduceResult::ValueIndex);
    if (!index) copy_result(call, r.dst, work, size);
    return;
  }
  step.dst = work;
  all_repeats(call, op, step, lanes);
  uint32_t starts[8] = {0}, level = 0, pairs = lanes.repeat;
  while (pairs > 1) {
    call.core.barrier(Pipe::V);
    uint32_t full = pairs / per_step, rest = pairs % per_step, from = starts[level];
    uint32_t to = index ? (from + pairs * pair + kBlockBytes - 1) / kBlockBytes * kBlockBytes : from;
    Reduction further = r;
    further.src_blk_stride = 1;
    further.src_rep_stride = kBlocksPerRepeat;
    further.dst_rep_stride = 1;
    further.src = bytes(work, from);
    further.dst = bytes(work, to);
    if (full) {
      Lanes all = even_lanes(per_step);
      all.repeat = full;
      all_repeats(call, op, further, all);
    }
    if (full && rest) call.core.barrier(Pipe::V);  // neighbouring results share a 32-byte block
    if (rest) {
      further.src = bytes(work, from + full * kRepeatBytes);
      further.dst = bytes(work, to + full * pair);
      reduce_repeats(call, op, further, even_lanes(rest), ReduceResult::ValueIndex);
    }
    pairs = full + (rest ? 1 : 0);
    starts[++level] = to;
  }
  if (!index) {
    fold_pair(call, op, r, work, lanes.repeat <= per_step);
    return copy_result(call, r.dst, work, size);
  }
  // From the last step back to the first: each index points at a pair of the step before.
  call.order(Pipe::V, Pipe::S);
  auto index_at = [&](uint32_t offset) -> uint32_t {
    const void* p = bytes(static_cast<const void*>(work), offset + size);
    return size == 2 ? call.load(static_cast<const uint16_t*>(p)) : call.load(static_cast<const uint32_t*>(p));
  };
  uint32_t at = 0;  // which pair of the level
  for (uint32_t l = level; l > 0; l--) at = at * per_step + index_at(starts[l] + at * pair) / 2;
  uint32_t found = at * r.src_rep_stride * (kBlockBytes / size) + index_at(at * pair);
  const void* value = bytes(static_cast<const void*>(work), starts[level]);
  if (size == 2) {
    call.store(static_cast<uint16_t*>(r.dst), call.load(static_cast<const uint16_t*>(value)));
    call.store(static_cast<uint16_t*>(r.dst) + 1, static_cast<uint16_t>(found));
  } else {
    call.store(static_cast<uint32_t*>(r.dst), call.load(static_cast<const uint32_t*>(value)));
    call.store(static_cast<uint32_t*>(r.dst) + 1, found);
  }
  call.order(Pipe::S, Pipe::V);
  call.order(Pipe::S, Pipe::MTE3);
}

// Count form with a last, shorter repeat: body and tail, then the better of the two.
void extreme_with_tail(LocalCall& call, ReduceOp op, const Reduction& r, void* work, uint32_t count, bool index) {
  uint32_t size = dtype_size(r.dtype), per_repeat = kRepeatBytes / size;
  uint32_t body = count / per_repeat, tail = count % per_repeat;
  if (body == 0) return extreme_of(call, op, r, work, lanes_of(tail), index);
  Lanes all = lanes_of(per_repeat);
  all.repeat = body;
  extreme_of(call, op, r, work, all, index);
  if (tail == 0) return;
  auto load_pair = [&](uint32_t out[2]) {
    call.order(Pipe::V, Pipe::S);
    for (uint32_t i = 0; i < (index ? 2 : 1); i++)
      out[i] = size == 2 ? call.load(static_cast<const uint16_t*>(r.dst) + i)
                         : call.load(static_cast<const uint32_t*>(r.dst) + i);
  };
  auto store_at = [&](void* p, uint32_t i, uint32_t v) {
    if (size == 2)
      call.store(static_cast<uint16_t*>(p) + i, static_cast<uint16_t>(v));
    else
      call.store(static_cast<uint32_t*>(p) + i, v);
  };
  uint32_t of_body[2] = {}, of_tail[2] = {}, last[2] = {};
  load_pair(of_body);
  Reduction rest = r;
  rest.src = bytes(r.src, uint64_t(body) * kRepeatBytes);
  extreme_of(call, op, rest, work, lanes_of(tail), index);
  load_pair(of_tail);
  store_at(work, 0, of_body[0]);
  store_at(work, 1, of_tail[0]);
  call.order(Pipe::S, Pipe::V);
  rest.src = work;
  extreme_of(call, op, rest, work, lanes_of(2), index);
  if (!index) return;
  load_pair(last);
  store_at(r.dst, 1, last[1] == 1 ? body * per_repeat + of_tail[1] : of_body[1]);
  call.order(Pipe::S, Pipe::V);
  call.order(Pipe::S, Pipe::MTE3);
}

void check_work(LocalCall& call, const void* work) {
  Range first{reinterpret_cast<uint64_t>(work), 1, 1, 0};
  call.core.check_local(first, kBlockBytes, call.api, call.pc, "sharedTmpBuffer");
}

}  // namespace

// Count form: one accumulating instruction in counter mode, its result fetched and stored by the scalar unit; the work
// tensor isn't used. Mask forms: a result per repeat into the work tensor, summed there by trees again.
void reduce_sum(const Reduction& r, void* work, const Lanes& lanes, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_reducible(call, r.dtype);
  uint32_t size = dtype_size(r.dtype), per_repeat = kRepeatBytes / size;
  if (lanes.count) {
    if (!lanes.use_set_mask) call.core.scalar(ScalarKind::Mask);
    Lanes l = lanes;
    if (lanes.use_set_mask) l.count = 0, l.repeat = 1;  // how many is in the mask register
    accumulate(call, r, l);
    call.order(Pipe::V, Pipe::S);
    if (size == 2)
      call.store(static_cast<uint16_t*>(r.dst), static_cast<uint16_t>(call.core.accumulator), Register::Accumulator);
    else
      call.store(static_cast<uint32_t*>(r.dst), static_cast<uint32_t>(call.core.accumulator), Register::Accumulator);
    call.order(Pipe::S, Pipe::V);
    call.order(Pipe::S, Pipe::MTE3);
    if (!lanes.use_set_mask) {  // leaves normal mode with a full mask behind
      call.core.counter_mode = false;
      call.core.mask[0] = call.core.mask[1] = ~0ull;
    }
    return;
  }
  check_work(call, work);
  Reduction first = r;
  first.dst = work;
  all_repeats(call, ReduceOp::Sum, first, lanes);
  if (lanes.repeat == 1) return copy_result(call, r.dst, work, size);
  call.core.barrier(Pipe::V);
  Reduction next = first;
  next.src = work;
  next.src_blk_stride = 1;
  next.src_rep_stride = kBlocksPerRepeat;
  Lanes counter;
  counter.count = lanes.repeat;
  reduce_repeats(call, ReduceOp::Sum, next, counter, ReduceResult::OnlyValue);
  call.core.counter_mode = false;  // that step has its own mode, and leaves normal mode behind
  call.core.barrier(Pipe::V);
  uint32_t left = (lanes.repeat + per_repeat - 1) / per_repeat;
  call.require(left <= per_repeat, "repeatTime " + std::to_string(lanes.repeat) + " is above " +
                                       std::to_string(per_repeat * per_repeat) + ", what two steps can sum");
  if (left == 1) return copy_result(call, r.dst, work, size);
  next.dst = r.dst;
  reduce_repeats(call, ReduceOp::Sum, next, lanes_of(left), ReduceResult::OnlyValue);
}

void reduce_extreme(ReduceOp op, const Reduction& r, void* work, const Lanes& lanes, bool index, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_reducible(call, r.dtype);
  check_work(call, work);
  if (lanes.count) return extreme_with_tail(call, op, r, work, lanes.count, index);
  extreme_of(call, op, r, work, lanes, index);
}

}  // namespace vnpu
