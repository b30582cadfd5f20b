// Timeline: what every core of one launch did when, in modelled time. The timing model fills it, Perfetto shows it.
#pragma once
#include <string>
#include <vector>

#include "trace.h"

namespace vnpu {

struct TaskTimes;

// One stretch of time on one pipe of one block; times in cycles from the start of the task.
struct Span {
  enum Kind : uint8_t {
    kInstruction,  // `end` is when its data have arrived, which may be after the pipe's next instruction began
    kWait,         // the pipe has work and may not begin it
    kScalar,       // scalar work: the issue of instructions, and what stands between them
  };
  int block;
  Pipe pipe;
  Kind kind;
  double begin, end;
  const char* name;             // the AscendC call, or the one that waits
  const void* pc;               // of the call in the kernel; may be null
  Pipe awaited = Pipe::kCount;  // kWait: the pipe that is waited for, where it is one
  uint32_t bytes = 0;           // kInstruction: moved from or to GM
};

// An order between two pipes of one block that the program asked for: raised by `src`, seen by `dst`.
struct Flow {
  int block;
  Pipe src, dst;
  int id;  // event; negative: inserted by the compiler's automatic synchronization
  double raised, seen;
};

class Timeline {
 public:
  // Viewers open larger files slowly: blocks that would need more records are shown as one bar each.
  static constexpr size_t kRecords = 100000;
  static constexpr size_t kSpans = 3 * kRecords;  // for a first block that needs more already

  Timeline() = default;
  Timeline(const std::vector<const Trace*>& blocks, const Groups& groups);

  // Whether spans of this block are kept, and there is room for more.
  bool shows(int block) const { return block < shown_ && spans.size() < kSpans; }
  bool empty() const { return cores.empty(); }

  std::vector<Span> spans;  // per block and pipe in the order of time
  std::vector<Flow> flows;
  std::vector<int> cores;  // the core that block i ran on

  // Chrome trace format: one process per core, one thread per pipe; times in microseconds.
  bool write(const char* path, const TaskTimes& times, const std::string& kernel, const std::string& chip,
             double cycles_per_us) const;

 private:
  Groups groups_;
  std::string left_out() const;  // "" when everything is shown

  int shown_ = 0;  // the first blocks, with everything they did
};

}  // namespace vnpu
