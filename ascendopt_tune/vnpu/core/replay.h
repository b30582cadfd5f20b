// Replay: the last launch of this thread, timed again under another clock. Traces hold no times (trace.h), so nothing
// is executed anew.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "l2.h"
#include "timing.h"

namespace vnpu {

// A launch that can be timed: its traces, and what L2 holds when it begins.
class Replay {
 public:
  // Warm: a pass before brings into L2 what stays there; otherwise it is empty.
  Replay(std::vector<Trace> traces, const Groups& groups, const Chip& chip, State state);

  const std::vector<const Trace*>& traces() const { return task_->traces; }
  const Groups& groups() const { return task_->groups; }
  const Chip& chip() const { return chip_; }
  TaskTimes times(const Chip& chip, Timeline* timeline) const;

 private:
  std::vector<Trace> traces_;
  std::unique_ptr<TaskTraces> task_;
  Chip chip_;
  State state_;
  L2State l2_;
};

// Makes `replay` the one that vnpu_replay() answers from, for the calling thread; null when nothing was timed.
void keep(std::shared_ptr<const Replay> replay);

}  // namespace vnpu
