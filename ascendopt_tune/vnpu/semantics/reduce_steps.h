// The reductions per repeat that ReduceSum, ReduceMax and ReduceMin are composed of.
#pragma once
#include "local_call.h"
#include "vnpu/reduce.h"

namespace vnpu {

// Only half and float are summed and compared on architecture 2201.
void check_reducible(const LocalCall& call, DType t);
// The mask register holds what the instruction was given, and keeps it.
void leave_mask(LocalCall& call, const Lanes& lanes);
// One instruction: a result per repeat; the sum of all repeats into the accumulator register.
void reduce_repeats(LocalCall& call, ReduceOp op, const Reduction& r, const Lanes& lanes, ReduceResult result);
void accumulate(LocalCall& call, const Reduction& r, const Lanes& lanes);

}  // namespace vnpu
