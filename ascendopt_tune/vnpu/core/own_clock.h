// What a core's own counter says while its kernel runs (GetSystemCycle): the trace so far, timed as if the core were
// alone. The task's time (timing.h) knows of the other cores and is computed when all have ended.
#pragma once
#include "core_sim.h"
#include "traffic.h"

namespace vnpu {

class OwnClock {
 public:
  OwnClock(const Trace& trace, const Chip& chip);

  // Cycles from the core's first instruction until its scalar unit is through with the trace as it is now.
  double now();

 private:
  const Chip& chip_;
  const std::vector<const Trace*> traces_;
  const std::vector<uint16_t> nobody_;  // shares a transfer
  const Meetings none_;                 // it is alone
  L2State l2_;
  CrossFlags<double> cross_;
  Traffic traffic_;
  CoreSim core_;
};

}  // namespace vnpu
