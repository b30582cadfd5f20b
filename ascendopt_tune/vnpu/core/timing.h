// The pipe timing model: how long a task takes, from the traces of its cores. Modelled, not measured.
//
// A core's scalar unit walks its trace in program order and hands instructions to one FIFO per pipe. A pipe starts its
// head when the scalar unit has issued it, the pipe is free and the flags it waits for are set. Vector instructions
// take what the chip's table says; GM transfers additionally share HBM and L2 bandwidth with every core
// (bandwidth.h), and hit or miss L2 by what was touched before (l2.h). Times are in cycles of the core clock.
#pragma once
#include <string>
#include <vector>

#include "chip.h"
#include "groups.h"
#include "timeline.h"
#include "trace.h"
#include "windows.h"

namespace vnpu {

// What a launch finds: L2 and the cores as earlier launches of the same kernel left them (the steady state, in which
// everything is shown unless it says otherwise); L2 without anything of its own, because another kernel that touches
// more than L2 holds ran before it; or nothing at all, as the first launch of a kernel.
enum class State { Warm, Flushed, Cold };

struct CoreTimes {
  double loading = 0;                  // of the time until `first`: MTE2 copies the tiling data
  double first = 0;                    // when the block's first instruction was there; until then the core starts
  double start = 0, end = 0;           // cycles from the start of the task
  double busy[kPipes] = {};            // cycles a pipe was executing
  double stall_gm = 0;                 // cycles MTE instructions spent waiting for shared bandwidth
  double waits[kPipes][kPipes] = {};   // waits[p][q]: cycles in which p, with nothing under way, waited for q
  double queue_full = 0;               // cycles the scalar unit could not issue because a pipe's queue was full
  double all_pipes = 0, sync_all = 0;  // cycles the scalar unit waited for all pipes, and for the other cores
};

struct TaskTimes {
  double cycles = 0;  // whole task, with launch and head cost
  std::vector<CoreTimes> cores;
  double l2_hit_bytes = 0, l2_miss_bytes = 0;
  std::string deadlock;  // not empty: what waits for what
};

// Microseconds under msprof's names; all but the task's are means over the cores that ran.
struct PipeTimes {
  double task = 0, core = 0, vec = 0, scalar = 0, mte2 = 0, mte3 = 0, mte1 = 0, mac = 0, fixpipe = 0;
};
// `kind`: of which cores, where a task has both.
PipeTimes mean_times(const TaskTimes& times, const Groups& groups, CoreKind kind, const Chip& chip);
// The cores that a task's times are shown of, where one line has to do: the cube cores, where it has some.
CoreKind leading(const Groups& groups);

class L2State;

// The traces of a task's cores, as groups number them, and what follows from them whatever the clock.
struct TaskTraces {
  TaskTraces(std::vector<const Trace*> all, const Groups& cores, const Chip& chip);

  Groups groups;
  std::vector<const Trace*> traces;
  std::vector<std::vector<uint16_t>> sharers;  // how many cores make each transfer at the same address; may be empty
  Meetings meetings;                           // copies that ask for a few bytes of a window of which others do, too
  double few_bytes;                            // how many bytes are few there, at most
  bool tiling = false;                         // the kernel loads tiling data
};

// `timeline` may be null. The order of cores doesn't influence the result.
TaskTimes simulate(const TaskTraces& task, const Chip& chip, L2State& l2, State state, Timeline* timeline);

}  // namespace vnpu
