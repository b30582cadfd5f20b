// Windows of global memory in which several cores ask for a few bytes each: they are served one after another
// (asc-devkit, same-address access: requests are handled by 512 bytes, and those of one window in turn).
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "chip.h"
#include "trace.h"

namespace vnpu {

// Of each core, whether its copies, in their order, ask for a few bytes of a window of which another core does, too.
// Empty for a core none of whose copies do.
using Meetings = std::vector<std::vector<bool>>;
Meetings meetings_of(const std::vector<const Trace*>& traces, const Chip& chip);

// When the windows are free again, as a task goes on.
class Windows {
 public:
  explicit Windows(const Chip& chip) : chip_(chip) {}

  // How many cycles longer the requests of a copy of `core` take that the core makes one after another from `now` on
  // and that would take `alone`, because others are served before them. A core's own requests don't wait for each other
  // here: what those of one copy do is in `alone`.
  double delay(int core, const Transfer& t, double now, double alone);

 private:
  struct Window {
    double free = 0;
    int core = -1;  // that asked last
  };
  const Chip& chip_;
  std::unordered_map<uint64_t, Window> windows_;
};

}  // namespace vnpu
