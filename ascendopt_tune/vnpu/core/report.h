// Report: what is told about one launch, as JSON.
#pragma once
#include <string>
#include <vector>

#include "machine.h"
#include "timing.h"

namespace vnpu {

constexpr size_t kMaxHazards = 16;

struct Report {
  std::string kernel;
  uint32_t block_dim = 0;
  int status = 0;
  std::string message;
  std::vector<HazardReport> hazards;
  std::vector<KernelError> errors;
  uint64_t slack_writes = 0;
  TaskTimes times;
  std::vector<Span> spans;

  // Fills the times below, in microseconds, from `times` (msprof's meaning: means over the cores).
  void profile(const std::vector<const Trace*>& traces, const Chip& chip);
  double task_duration_us = 0, aiv_time_us = 0, vec_us = 0, scalar_us = 0, mte2_us = 0, mte3_us = 0;
  double stall_gm_us = 0, conflict_cycles = 0, instructions = 0, mte2_bytes = 0, mte3_bytes = 0, cycles_per_us = 0;

  std::string json() const;
};

// Makes `report` the one vnpu_last_report() answers with, for the calling thread.
void publish(const Report& report);

}  // namespace vnpu
