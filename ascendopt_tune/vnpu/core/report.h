// Report: what is told about one launch, as JSON.
#pragma once
#include <string>
#include <vector>

#include "machine.h"
#include "timing.h"

namespace vnpu {

constexpr size_t kMaxHazards = 16;

// The farthest that a launch went past a tensor, inside the rest that its allocation is rounded up to.
struct SlackUse {
  std::string buffer;  // the tensor, for people
  bool write = false;
  uint64_t bytes = 0;
};

struct Report {
  std::string kernel, chip;
  uint32_t block_dim = 0;
  Groups groups;
  int status = 0;
  std::string message;
  std::vector<HazardReport> hazards;
  std::vector<UnwrittenUse> unwritten;
  std::vector<KernelError> errors;
  std::vector<std::string> relies_on;   // see HazardTracker::relies_on
  std::vector<HazardReport> leaned_on;  // see HazardTracker::leaned_on
  std::vector<SlackUse> slack;
  TaskTimes times;
  Timeline timeline;  // empty unless it was asked for (LaunchOptions::trace)

  // Fills the times below, in microseconds, from `times` (msprof's meaning: means over the cores).
  void profile(const std::vector<const Trace*>& traces, const Chip& chip);
  double task_duration_us = 0, cycles_per_us = 0;
  // What the cores of one kind did.
  struct OfKind {
    CoreKind kind;
    PipeTimes pipes;
    std::string stalls;  // "name": microseconds, ...
    double stall_gm_us = 0, conflict_cycles = 0, instructions = 0, mte2_bytes = 0, written_bytes = 0;
    std::array<double, kPipes> issued{};  // instructions of each pipe
  };
  std::vector<OfKind> kinds;

  std::string json() const;

 private:
  std::string profile_json() const;
};

// Makes `report` the one that vnpu_last_report() and vnpu_trace_json() answer from, for the calling thread.
void publish(Report&& report);

std::string quoted(const std::string& text);  // as a JSON string
// Offset of a return address in the kernel binary, or "null": `addr2line -i -e <binary>` turns it into file and line.
std::string site_offset(const void* pc);

}  // namespace vnpu
