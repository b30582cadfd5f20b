// Reductions in local memory: what include/ascendc/vec_reduce.h needs of libvnpu.so.
#pragma once
#include "device.h"

namespace vnpu {

enum class ReduceOp : uint8_t { Sum, Max, Min };
// Where a maximum or minimum and its index go (AscendC::ReduceOrder).
enum class ReduceResult : uint8_t { ValueIndex = 0, IndexValue, OnlyValue, OnlyIndex };

// Strides: dst in results of one repeat, src in 32-byte blocks.
struct Reduction {
  void* dst = nullptr;
  const void* src = nullptr;
  DType dtype = DType::None;
  int32_t dst_rep_stride = 1, src_blk_stride = 1, src_rep_stride = 8;
};

// One result per repeat; per 32-byte block; per pair of lanes.
void reduce_repeats(ReduceOp op, const Reduction& r, const Lanes& lanes, ReduceResult result, const char* api);
void reduce_blocks(ReduceOp op, const Reduction& r, const Lanes& lanes, const char* api);
void reduce_pairs(const Reduction& r, const Lanes& lanes, const char* api);
// The sum of all lanes into the accumulator register, no result in memory.
void accumulate(const Reduction& r, const Lanes& lanes, const char* api);

// One result for everything. `repeat` may be above 255; mask as in Lanes, `count` > 0 is the count form.
void reduce_sum(const Reduction& r, void* work, const Lanes& lanes, const char* api);
void reduce_extreme(ReduceOp op, const Reduction& r, void* work, const Lanes& lanes, bool index, const char* api);

// Registers: bits of the last accumulating sum; bits of the last maximum or minimum with its index in the high half.
uint64_t accumulator();
uint64_t extreme();

}  // namespace vnpu
