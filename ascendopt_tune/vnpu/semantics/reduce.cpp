// Reductions of architecture 2201. Order of summation (AscendC reference, ReduceDataBlock and ReduceSum): inside a
// repeat a binary tree over neighbours; half rounds after every addition. Lanes that the mask leaves out count as 0.
// Cycles per repeat: asc-devkit, theoretical throughput table, arch 2201 (ReduceRepeat 7, ReduceDataBlock 7 for half
// and 1 for float, ReducePairElem 1); ReduceSum/Max/Min are built from these as the reference describes them.
#include "vnpu/reduce.h"

#include "local_call.h"

namespace vnpu {
namespace {

constexpr uint32_t kMaxLanes = 128;
constexpr double kRepeatCycles = 7;
constexpr uint32_t kMaxRepeats = 255;

// Rounds to the precision of the storage type T.
template <typename T>
float rounded(float f) {
  T t;
  t = f;
  return static_cast<float>(t);
}

template <typename T>
const T* lane(const Reduction& r, uint32_t repeat, uint32_t l) {
  constexpr uint32_t per_block = kBlockBytes / sizeof(T);
  uint64_t block = uint64_t(repeat) * r.src_rep_stride + uint64_t(l / per_block) * r.src_blk_stride;
  return reinterpret_cast<const T*>(static_cast<const uint8_t*>(r.src) + block * kBlockBytes) + l % per_block;
}

// The lanes of one repeat as floats; lanes that aren't enabled become `neutral`.
template <typename T>
void load(const Reduction& r, const RepeatLanes& lanes, uint32_t repeat, float neutral, float* out) {
  constexpr uint32_t per_repeat = kRepeatBytes / sizeof(T);
  uint32_t last = lanes.last(repeat);
  if (r.src_blk_stride == 1 && lanes.dense()) {
    const T* p = lane<T>(r, repeat, 0);
    for (uint32_t l = 0; l < last; l++) out[l] = static_cast<float>(p[l]);
  } else {
    for (uint32_t l = 0; l < last; l++)
      out[l] = lanes.enabled(repeat, l) ? static_cast<float>(*lane<T>(r, repeat, l)) : neutral;
  }
  for (uint32_t l = last; l < per_repeat; l++) out[l] = neutral;
}

// Sums n (a power of two) neighbours pairwise until one is left; destroys v.
template <typename T>
float tree_sum(float* v, uint32_t n) {
  for (; n > 1; n /= 2)
    for (uint32_t i = 0; i < n / 2; i++) v[i] = rounded<T>(v[2 * i] + v[2 * i + 1]);
  return v[0];
}

struct Best {
  float value;
  uint32_t index;
};

// The first lane with the largest (smallest) value.
Best best_of(ReduceOp op, const float* v, const RepeatLanes& lanes, uint32_t repeat) {
  uint32_t last = lanes.last(repeat), i = 0;
  while (!lanes.enabled(repeat, i)) i++;
  Best best{v[i], i};
  for (i++; i < last; i++)
    if ((op == ReduceOp::Max ? v[i] > best.value : v[i] < best.value) && lanes.enabled(repeat, i)) best = {v[i], i};
  return best;
}

template <typename T>
uint32_t bits_of(float f) {
  if constexpr (sizeof(T) == 2)
    return float_to_half(f);
  else
    return float_to_bits(f);
}

uint32_t size_of_result(ReduceOp op, ReduceResult result, uint32_t element) {
  if (op == ReduceOp::Sum || result == ReduceResult::OnlyValue) return element;
  return result == ReduceResult::OnlyIndex ? 4 : 2 * element;
}

template <typename T>
void store_result(uint8_t* dst, ReduceResult result, Best b) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  Bits value = static_cast<Bits>(bits_of<T>(b.value)), index = static_cast<Bits>(b.index);
  switch (result) {
    case ReduceResult::ValueIndex:
      std::memcpy(dst, &value, sizeof(Bits));
      std::memcpy(dst + sizeof(Bits), &index, sizeof(Bits));
      return;
    case ReduceResult::IndexValue:
      std::memcpy(dst, &index, sizeof(Bits));
      std::memcpy(dst + sizeof(Bits), &value, sizeof(Bits));
      return;
    case ReduceResult::OnlyValue:
      std::memcpy(dst, &value, sizeof(Bits));
      return;
    case ReduceResult::OnlyIndex:
      std::memcpy(dst, &b.index, 4);
      return;
  }
}

// Declares what the enabled lanes of the source cover.
void read_source(LocalCall& call, const Reduction& r, const RepeatLanes& lanes) {
  uint32_t size = dtype_size(r.dtype), per_block = kBlockBytes / size, last = lanes.last(0);
  call.require(r.src_blk_stride >= 0 && r.src_blk_stride <= 65535 && r.src_rep_stride >= 0 &&
                   r.src_rep_stride <= 65535 && r.dst_rep_stride >= 0 && r.dst_rep_stride <= 65535,
               "dstRepStride " + std::to_string(r.dst_rep_stride) + ", srcBlkStride " +
                   std::to_string(r.src_blk_stride) + " and srcRepStride " + std::to_string(r.src_rep_stride) +
                   " have to be in 0..65535");
  uint32_t blocks = (last + per_block - 1) / per_block, tail = (last - (blocks - 1) * per_block) * size;
  uint64_t rep = uint64_t(r.src_rep_stride) * kBlockBytes, blk = uint64_t(r.src_blk_stride) * kBlockBytes;
  uint32_t full = lanes.repeats(), rest = lanes.last(full - 1);
  if (rest != last) full--;  // counter mode: the last repeat is shorter
  if (r.src_blk_stride <= 1)
    call.read(r.src, (blocks - 1) * blk + tail, "source", kBlockBytes, full, rep);
  else  // block by block: what lies between them isn't touched
    for (uint32_t b = 0; b < blocks; b++)
      call.read(static_cast<const uint8_t*>(r.src) + b * blk, b + 1 < blocks ? kBlockBytes : tail, "source", kBlockBytes,
                full, rep);
  if (rest != last) {
    blocks = (rest + per_block - 1) / per_block;
    tail = (rest - (blocks - 1) * per_block) * size;
    call.read(static_cast<const uint8_t*>(r.src) + full * rep, (blocks - 1) * blk + tail, "source");
  }
}

void check_dtype(const char* api, DType t, const void* pc) {
  if (t != DType::F32 && t != DType::F16) unsupported_dtype(api, t, pc);
}

// One result per repeat: the instruction under WholeReduceSum/Max/Min and every step of ReduceMax/Min.
template <typename T>
void repeats_as(LocalCall& call, ReduceOp op, const Reduction& r, const RepeatLanes& lanes, ReduceResult result) {
  uint32_t size = size_of_result(op, result, sizeof(T));
  uint8_t* dst = static_cast<uint8_t*>(r.dst);
  read_source(call, r, lanes);
  call.write(dst, size, "destination", std::min(size, op == ReduceOp::Sum ? size : 8u), lanes.repeats(),
             uint64_t(r.dst_rep_stride) * size);
  float v[kMaxLanes];
  Best best{0, 0};
  for (uint32_t i = 0; i < lanes.repeats(); i++, dst += uint64_t(r.dst_rep_stride) * size) {
    load<T>(r, lanes, i, 0, v);
    if (op == ReduceOp::Sum) {
      store_result<T>(dst, ReduceResult::OnlyValue, {tree_sum<T>(v, lanes.per_repeat()), 0});
      continue;
    }
    Best b = best_of(op, v, lanes, i);
    store_result<T>(dst, result, b);
    if (i == 0 || (op == ReduceOp::Max ? b.value > best.value : b.value < best.value))
      best = {b.value, i * lanes.per_repeat() + b.index};
  }
  if (op != ReduceOp::Sum) call.core.extreme = uint64_t(best.index) << 32 | bits_of<T>(best.value);
  call.issue(lanes.repeats() * kRepeatCycles);
}

void repeats(LocalCall& call, ReduceOp op, const Reduction& r, const Lanes& l, ReduceResult result) {
  RepeatLanes lanes(call, l, kRepeatBytes / dtype_size(r.dtype));
  if (lanes.none()) return;
  if (r.dtype == DType::F16)
    repeats_as<f16>(call, op, r, lanes, result);
  else
    repeats_as<float>(call, op, r, lanes, result);
}

template <typename T>
void blocks_as(LocalCall& call, ReduceOp op, const Reduction& r, const RepeatLanes& lanes) {
  constexpr uint32_t per_block = kBlockBytes / sizeof(T), result_bytes = kBlocksPerRepeat * sizeof(T);
  uint64_t dst_stride = uint64_t(r.dst_rep_stride) * result_bytes;
  read_source(call, r, lanes);
  float neutral = op == ReduceOp::Sum ? 0 : op == ReduceOp::Max ? -INFINITY : INFINITY, v[kMaxLanes];
  uint32_t written = 0;
  for (uint32_t i = 0; i < lanes.repeats(); i++) {
    load<T>(r, lanes, i, neutral, v);
    T* dst = reinterpret_cast<T*>(static_cast<uint8_t*>(r.dst) + i * dst_stride);
    uint32_t blocks = (lanes.last(i) + per_block - 1) / per_block;
    if (i == 0) {
      written = blocks;
      call.write(dst, written * sizeof(T), "destination", result_bytes, lanes.repeats(), dst_stride);
    }
    for (uint32_t b = 0; b < blocks; b++) {
      bool any = false;  // a block without an enabled lane keeps its old result
      for (uint32_t l = 0; l < per_block && !any; l++) any = lanes.enabled(i, b * per_block + l);
      if (!any) continue;
      float* p = v + b * per_block;
      float result = p[0];
      if (op == ReduceOp::Sum)
        result = tree_sum<T>(p, per_block);
      else
        for (uint32_t l = 1; l < per_block; l++)
          if (op == ReduceOp::Max ? p[l] > result : p[l] < result) result = p[l];
      dst[b] = result;
    }
  }
  call.issue(lanes.repeats() * (sizeof(T) == 2 ? 7.0 : 1.0));
}

template <typename T>
void pairs_as(LocalCall& call, const Reduction& r, const RepeatLanes& lanes) {
  constexpr uint32_t result_bytes = kRepeatBytes / 2;
  read_source(call, r, lanes);
  float v[kMaxLanes];
  for (uint32_t i = 0; i < lanes.repeats(); i++) {
    load<T>(r, lanes, i, 0, v);
    T* dst = reinterpret_cast<T*>(static_cast<uint8_t*>(r.dst) + uint64_t(i) * r.dst_rep_stride * result_bytes);
    uint32_t results = (lanes.last(i) + 1) / 2;
    if (i == 0)
      call.write(dst, results * sizeof(T), "destination", kBlockBytes, lanes.repeats(),
                 uint64_t(r.dst_rep_stride) * result_bytes);
    for (uint32_t p = 0; p < results; p++)  // a pair without an enabled lane keeps its old result
      if (lanes.enabled(i, 2 * p) || (2 * p + 1 < lanes.per_repeat() && lanes.enabled(i, 2 * p + 1)))
        dst[p] = v[2 * p] + v[2 * p + 1];
  }
  call.issue(lanes.repeats());
}

// Repeats are added to the accumulator one after the other.
template <typename T>
void accumulate_as(LocalCall& call, const Reduction& r, const RepeatLanes& lanes) {
  read_source(call, r, lanes);
  float v[kMaxLanes], sum = 0;
  for (uint32_t i = 0; i < lanes.repeats(); i++) {
    load<T>(r, lanes, i, 0, v);
    float one = tree_sum<T>(v, lanes.per_repeat());
    sum = i == 0 ? one : rounded<T>(sum + one);
  }
  call.core.accumulator = bits_of<T>(sum);
  call.issue(lanes.repeats() * kRepeatCycles);
}

void accumulate(LocalCall& call, const Reduction& r, const Lanes& l) {
  RepeatLanes lanes(call, l, kRepeatBytes / dtype_size(r.dtype));
  if (lanes.none()) return;
  if (r.dtype == DType::F16)
    accumulate_as<f16>(call, r, lanes);
  else
    accumulate_as<float>(call, r, lanes);
}

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
  uint32_t total = lanes.repeat, size = size_of_result(op, ReduceResult::ValueIndex, dtype_size(r.dtype));
  for (uint32_t done = 0; done < total; done += kMaxRepeats) {
    if (done) call.core.barrier(Pipe::V);  // neighbouring results share a 32-byte block
    lanes.repeat = std::min(kMaxRepeats, total - done);
    repeats(call, op, r, lanes, ReduceResult::ValueIndex);
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

// One result of `lanes.repeat` repeats. With an index every step's results are kept, because the index is recovered
// through them; without, steps work in place (AscendC reference, ReduceMax, size of sharedTmpBuffer).
void extreme_of(LocalCall& call, ReduceOp op, const Reduction& r, void* work, const Lanes& lanes, bool index) {
  uint32_t size = dtype_size(r.dtype), pair = 2 * size, per_step = kRepeatBytes / pair;
  Reduction step = r;
  step.dst_rep_stride = 1;
  if (lanes.repeat == 1) {
    if (!index) step.dst = work;
    repeats(call, op, step, lanes, ReduceResult::ValueIndex);
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
      repeats(call, op, further, even_lanes(rest), ReduceResult::ValueIndex);
    }
    pairs = full + (rest ? 1 : 0);
    starts[++level] = to;
  }
  if (!index) return copy_result(call, r.dst, work, size);
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

void reduce_repeats(ReduceOp op, const Reduction& r, const Lanes& lanes, ReduceResult result, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_dtype(api, r.dtype, call.pc);
  repeats(call, op, r, lanes, result);
}

void reduce_blocks(ReduceOp op, const Reduction& r, const Lanes& l, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_dtype(api, r.dtype, call.pc);
  RepeatLanes lanes(call, l, kRepeatBytes / dtype_size(r.dtype));
  if (lanes.none()) return;
  if (r.dtype == DType::F16)
    blocks_as<f16>(call, op, r, lanes);
  else
    blocks_as<float>(call, op, r, lanes);
}

void reduce_pairs(const Reduction& r, const Lanes& l, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_dtype(api, r.dtype, call.pc);
  RepeatLanes lanes(call, l, kRepeatBytes / dtype_size(r.dtype));
  if (lanes.none()) return;
  if (r.dtype == DType::F16)
    pairs_as<f16>(call, r, lanes);
  else
    pairs_as<float>(call, r, lanes);
}

void accumulate(const Reduction& r, const Lanes& lanes, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_dtype(api, r.dtype, call.pc);
  accumulate(call, r, lanes);
}

// Count form: one accumulating instruction in counter mode, its result fetched and stored by the scalar unit; the work
// tensor isn't used. Mask forms: a result per repeat into the work tensor, summed there by trees again.
void reduce_sum(const Reduction& r, void* work, const Lanes& lanes, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_dtype(api, r.dtype, call.pc);
  uint32_t size = dtype_size(r.dtype), per_repeat = kRepeatBytes / size;
  if (lanes.count) {
    if (!lanes.use_set_mask) call.core.scalar(call.core.chip.scalar_mask);
    Lanes l = lanes;
    if (lanes.use_set_mask) l.count = 0, l.repeat = 1;  // how many is in the mask register
    accumulate(call, r, l);
    call.order(Pipe::V, Pipe::S);
    if (size == 2)
      call.store(static_cast<uint16_t*>(r.dst), static_cast<uint16_t>(call.core.accumulator));
    else
      call.store(static_cast<uint32_t*>(r.dst), static_cast<uint32_t>(call.core.accumulator));
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
  repeats(call, ReduceOp::Sum, next, counter, ReduceResult::OnlyValue);
  call.core.barrier(Pipe::V);
  uint32_t left = (lanes.repeat + per_repeat - 1) / per_repeat;
  call.require(left <= per_repeat, "repeatTime " + std::to_string(lanes.repeat) + " is above " +
                                       std::to_string(per_repeat * per_repeat) + ", what two steps can sum");
  if (left == 1) return copy_result(call, r.dst, work, size);
  next.dst = r.dst;
  repeats(call, ReduceOp::Sum, next, lanes_of(left), ReduceResult::OnlyValue);
}

void reduce_extreme(ReduceOp op, const Reduction& r, void* work, const Lanes& lanes, bool index, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_dtype(api, r.dtype, call.pc);
  check_work(call, work);
  if (lanes.count) return extreme_with_tail(call, op, r, work, lanes.count, index);
  extreme_of(call, op, r, work, lanes, index);
}

uint64_t accumulator() {
  core().scalar(1);
  return core().accumulator;
}
uint64_t extreme() {
  core().scalar(1);
  return core().extreme;
}

}  // namespace vnpu
