// What happens on a core while its kernel runs, in program order: the one stream that everything that is told of a run
// listens to (Core::tell). Listeners change no value and no event.
#pragma once
#include <cstddef>
#include <cstdint>

#include "chip.h"
#include "groups.h"
#include "memory.h"

#include "vnpu/types.h"

namespace vnpu {

struct Work;
struct Transfer;

// One byte range (or a run of them) an instruction touches. A GM range's `canonical` is its device address.
struct Access {
  Range range;
  bool write = false;
  bool gm = false;
  bool atomic = false;
  uint64_t canonical = 0;
  bool cached = false;  // of the scalar unit, through the data cache
};

struct Event {
  enum Kind : uint8_t { kInstruction, kSetFlag, kWaitFlag, kBarrier, kBarrierAll, kMeet, kCrossSet, kCrossWait };
  Kind kind = kInstruction;
  Pipe pipe = Pipe::S;  // that executes it; of a flag, that waits; of one between cores, that it is raised behind
  Pipe src = Pipe::S;   // of a flag: the pipe that raises it
  int id = 0;           // of a flag
  const char* api = "";
  const void* pc = nullptr;
  ScalarKind cost = ScalarKind::kCount;  // what the scalar unit does for it; kCount: nothing
  bool settled = false;                  // of a flag: a freed buffer's, which may stay raised (queues)
  Scope scope = Scope::Kind;             // of a flag between cores, and of a meeting
  uint32_t box = 0;                      // of a flag in global memory: where it lies, a number of Crossing::box
  // Of an instruction: what it touches, and unless it is the scalar unit's, what it costs its pipe.
  const Access* accesses = nullptr;
  size_t n = 0;
  const Work* work = nullptr;
  const Transfer* transfer = nullptr;
};

}  // namespace vnpu
