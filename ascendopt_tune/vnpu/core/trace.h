// Trace: what one core issued, in program order. Written while the kernel executes, read by the timing model.
#pragma once
#include <vector>

#include "vnpu/types.h"

namespace vnpu {

struct Record {
  enum Kind : uint8_t {
    kInstr,    // `cycles` on `pipe`; `transfer` >= 0 adds a GM transfer under shared bandwidth
    kSetFlag,  // on `src`, seen by `pipe`, event `id`
    kWaitFlag,
    kBarrier,     // `pipe` waits for its own earlier instructions
    kBarrierAll,  // the scalar unit waits for every pipe
    kDepend,      // `pipe` waits for instruction number `epoch` of `src` (the compiler's automatic synchronization)
    kSyncAll,     // all cores meet
    kCrossSet,    // `pipe` raises flag `id` for all cores when its earlier instructions are complete
    kCrossWait,   // the scalar unit waits until every core has raised flag `id` once more
    kScalar,      // scalar work only
  };
  Kind kind = kInstr;
  Pipe pipe = Pipe::S;
  Pipe src = Pipe::S;
  uint8_t id = 0;
  uint32_t epoch = 0;         // kInstr: number of this instruction on its pipe, from 1
  float scalar_before = 0;    // cycles of scalar work since the previous record
  float cycles = 0;           // occupancy of the pipe without shared-bandwidth waiting
  int32_t transfer = -1;      // index into Trace::transfers
  const char* api = nullptr;  // the AscendC call, for reports
  const void* pc = nullptr;   // return address in the kernel, resolved to file and line when a report needs it
};

struct Trace {
  std::vector<Record> records;
  std::vector<Transfer> transfers;
  double scalar_tail = 0;  // scalar cycles after the last record
  double conflict_cycles = 0, vector_repeats = 0;
  uint64_t mte2_bytes = 0, mte3_bytes = 0;
};

}  // namespace vnpu
