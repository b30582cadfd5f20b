// Reductions of architecture 2201. Order of summation (AscendC reference, ReduceDataBlock and ReduceSum): inside a
// repeat a binary tree over neighbours; half rounds after every addition. Lanes that the mask leaves out count as 0.
// Cycles per repeat: asc-devkit, theoretical throughput table, arch 2201 (ReduceRepeat 7, ReduceDataBlock 7 for half
// and 1 for float, ReducePairElem 1); ReduceSum/Max/Min are built from these as the reference describes them.
#include "reduce_steps.h"
#include "tree_sum.h"

namespace vnpu {
namespace {

constexpr uint32_t kMaxLanes = 128;

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
void load_lanes(const Reduction& r, const RepeatLanes& lanes, uint32_t repeat, float neutral, float* out) {
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
      call.read(static_cast<const uint8_t*>(r.src) + b * blk, b + 1 < blocks ? kBlockBytes : tail, "source",
                kBlockBytes, full, rep);
  if (rest != last) {
    blocks = (rest + per_block - 1) / per_block;
    tail = (rest - (blocks - 1) * per_block) * size;
    call.read(static_cast<const uint8_t*>(r.src) + full * rep, (blocks - 1) * blk + tail, "source");
  }
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
    load_lanes<T>(r, lanes, i, 0, v);
    if (op == ReduceOp::Sum) {
      store_result<T>(dst, ReduceResult::OnlyValue, {tree_sum<T, kRepeatBytes / sizeof(T)>(v), 0});
      continue;
    }
    Best b = best_of(op, v, lanes, i);
    store_result<T>(dst, result, b);
    if (i == 0 || (op == ReduceOp::Max ? b.value > best.value : b.value < best.value))
      best = {b.value, i * lanes.per_repeat() + b.index};
  }
  if (op != ReduceOp::Sum) {
    call.core.extreme = uint64_t(best.index) << 32 | bits_of<T>(best.value);
    call.write_register(Register::Extreme);
  }
  call.issue(op == ReduceOp::Sum ? "ReduceRepeatSum" : "ReduceRepeat", r.dtype, lanes.repeats());
}

template <typename T>
void blocks_as(LocalCall& call, ReduceOp op, const Reduction& r, const RepeatLanes& lanes) {
  constexpr uint32_t per_block = kBlockBytes / sizeof(T), result_bytes = kBlocksPerRepeat * sizeof(T);
  uint64_t dst_stride = uint64_t(r.dst_rep_stride) * result_bytes;
  read_source(call, r, lanes);
  float neutral = op == ReduceOp::Sum ? 0 : op == ReduceOp::Max ? -INFINITY : INFINITY, v[kMaxLanes];
  uint32_t written = 0;
  for (uint32_t i = 0; i < lanes.repeats(); i++) {
    load_lanes<T>(r, lanes, i, neutral, v);
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
        result = tree_sum<T, per_block>(p);
      else
        for (uint32_t l = 1; l < per_block; l++)
          if (op == ReduceOp::Max ? p[l] > result : p[l] < result) result = p[l];
      dst[b] = result;
    }
  }
  call.issue(op == ReduceOp::Sum ? "ReduceDataBlockSum" : "ReduceDataBlock", r.dtype, lanes.repeats());
}

template <typename T>
void pairs_as(LocalCall& call, const Reduction& r, const RepeatLanes& lanes) {
  constexpr uint32_t result_bytes = kRepeatBytes / 2;
  read_source(call, r, lanes);
  float v[kMaxLanes];
  for (uint32_t i = 0; i < lanes.repeats(); i++) {
    load_lanes<T>(r, lanes, i, 0, v);
    T* dst = reinterpret_cast<T*>(static_cast<uint8_t*>(r.dst) + uint64_t(i) * r.dst_rep_stride * result_bytes);
    uint32_t results = (lanes.last(i) + 1) / 2;
    if (i == 0)
      call.write(dst, results * sizeof(T), "destination", kBlockBytes, lanes.repeats(),
                 uint64_t(r.dst_rep_stride) * result_bytes);
    for (uint32_t p = 0; p < results; p++)  // a pair without an enabled lane keeps its old result
      if (lanes.enabled(i, 2 * p) || (2 * p + 1 < lanes.per_repeat() && lanes.enabled(i, 2 * p + 1)))
        dst[p] = v[2 * p] + v[2 * p + 1];
  }
  call.issue("ReducePairElem", r.dtype, lanes.repeats());
}

// Repeats are added to the accumulator one after the other.
template <typename T>
void accumulate_as(LocalCall& call, const Reduction& r, const RepeatLanes& lanes) {
  read_source(call, r, lanes);
  float v[kMaxLanes], sum = 0;
  for (uint32_t i = 0; i < lanes.repeats(); i++) {
    load_lanes<T>(r, lanes, i, 0, v);
    float one = tree_sum<T, kRepeatBytes / sizeof(T)>(v);
    sum = i == 0 ? one : rounded<T>(sum + one);
  }
  call.core.accumulator = bits_of<T>(sum);
  call.write_register(Register::Accumulator);
  call.issue("ReduceAccumulate", r.dtype, lanes.repeats());
}

}  // namespace

void leave_mask(LocalCall& call, const Lanes& lanes) {
  if (lanes.use_set_mask) return;
  call.core.mask[0] = lanes.count ? lanes.count : lanes.mask[0];
  call.core.mask[1] = lanes.count ? 0 : lanes.mask[1];
}

void check_reducible(const LocalCall& call, DType t) {
  if (t != DType::F32 && t != DType::F16) unsupported_dtype(call.api, t, call.pc);
}

void reduce_repeats(LocalCall& call, ReduceOp op, const Reduction& r, const Lanes& l, ReduceResult result) {
  RepeatLanes lanes(call, l, kRepeatBytes / dtype_size(r.dtype));
  leave_mask(call, l);
  if (lanes.none()) return;
  if (r.dtype == DType::F16)
    repeats_as<f16>(call, op, r, lanes, result);
  else
    repeats_as<float>(call, op, r, lanes, result);
}

void accumulate(LocalCall& call, const Reduction& r, const Lanes& l) {
  RepeatLanes lanes(call, l, kRepeatBytes / dtype_size(r.dtype));
  leave_mask(call, l);
  if (lanes.none()) return;
  if (r.dtype == DType::F16)
    accumulate_as<f16>(call, r, lanes);
  else
    accumulate_as<float>(call, r, lanes);
}

void reduce_repeats(ReduceOp op, const Reduction& r, const Lanes& lanes, ReduceResult result, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_reducible(call, r.dtype);
  reduce_repeats(call, op, r, lanes, result);
}

void reduce_blocks(ReduceOp op, const Reduction& r, const Lanes& l, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_reducible(call, r.dtype);
  RepeatLanes lanes(call, l, kRepeatBytes / dtype_size(r.dtype));
  leave_mask(call, l);
  if (lanes.none()) return;
  if (r.dtype == DType::F16)
    blocks_as<f16>(call, op, r, lanes);
  else
    blocks_as<float>(call, op, r, lanes);
}

void reduce_pairs(const Reduction& r, const Lanes& l, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_reducible(call, r.dtype);
  RepeatLanes lanes(call, l, kRepeatBytes / dtype_size(r.dtype));
  leave_mask(call, l);
  if (lanes.none()) return;
  if (r.dtype == DType::F16)
    pairs_as<f16>(call, r, lanes);
  else
    pairs_as<float>(call, r, lanes);
}

void accumulate(const Reduction& r, const Lanes& lanes, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_reducible(call, r.dtype);
  accumulate(call, r, lanes);
}

uint64_t accumulator() {
  core().read_register(Register::Accumulator, "GetAccVal", VNPU_PC);
  return core().accumulator;
}
uint64_t extreme() {
  core().read_register(Register::Extreme, "GetReduceMaxMinCount", VNPU_PC);
  return core().extreme;
}

}  // namespace vnpu
