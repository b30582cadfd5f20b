// Running a kernel: all cores of one launch, then the observers' verdict.
#pragma once
#include <cstdint>
#include <string>

#include "memory.h"
#include "vnpu/kernel_info.h"

namespace vnpu {

// What a launch is told beside its kernel and arguments. It travels with the launch, as attribute kOptionsAttribute of
// its configuration: the value is a pointer. device/acl.py fills it: the layout is the border's.
struct LaunchOptions {
  uint32_t size = sizeof(LaunchOptions);
  uint8_t timing = 1;          // model the time
  uint8_t hazards = 1;         // look for hazards and unwritten bytes
  uint8_t trace = 0;           // keep a timeline: vnpu_trace_json()
  uint8_t log = 0;             // keep what cores issue and touch: vnpu_access_log()
  uint8_t writes = 0;          // keep what cores store: writes of the same bytes need no order
  uint8_t guard = 1;           // check a kernel's own loads and stores (guard.h)
  uint8_t fill = 0xff;         // what local memory holds where nobody has written
  uint8_t stack = 0;           // the same of a kernel's stack
  uint8_t state = 0;           // what it is timed as: State of timing.h
  uint8_t keep = 0;            // local memory holds what a core or launch before left there, instead of `fill`
  uint16_t threads = 0;        // 1 to 256, on which cores run as long as their order can't matter; 0: as
                               // ASCENDOPT_CORE_THREADS says, else 1
  const char* chip = nullptr;  // a name or file.toml; null: as ASCENDOPT_CHIP says, else ascend910b2
};
constexpr int kOptionsAttribute = 0x764e5055;

struct LaunchResult {
  int status = 0;               // 0, or the aclError the stream reports at its next synchronization
  double task_duration_us = 0;  // modelled; 0 when timing is off
  std::string message;          // empty when status is 0
};

// Runs the kernel on `block_dim` cores, or groups of cores, now. Thread-safe; launches of one process run one after
// another. `variables`: whether its binary has any, which are all cores'.
LaunchResult launch(const KernelInfo& kernel, uint32_t block_dim, void** args, bool variables,
                    const LaunchOptions& options);

// What vnpu_last_error() answers next.
void set_last_error(const std::string& what);

}  // namespace vnpu

extern "C" {
// JSON document about the last launch of this thread: status, message, profile, hazards, errors. See docs.
const char* vnpu_last_report();
const char* vnpu_last_error();
// How many cores of this thread's last launch ran beside others (LaunchOptions::threads); it is no part of the report,
// which is the same either way.
uint32_t vnpu_cores_beside();
// What the cores of this thread's last launch issued and touched (needs LaunchOptions::log); see access_log.h.
const char* vnpu_access_log();
// Times this thread's last launch again under `n` other clocks: line i of `clocks` holds assignments of chip constants
// ("launch.base_us=0.6 vector.head_cycles=23"; an empty line is the clock in force). times_us gets six modelled times
// for each, in microseconds: task, core, vector, scalar, MTE2, MTE3 (PipeTimes of timing.h). Nothing is executed.
// Returns 0, or 1 (vnpu_last_error) for an unknown constant or when nothing was timed.
int vnpu_replay(const char* clocks, double* times_us, uint32_t n);
// Keeps this thread's last launch for later: its number, for any thread, or 0 when nothing was timed. Whoever keeps one
// releases it: it holds the traces of all blocks.
int vnpu_replay_keep();
int vnpu_replay_kept(int number, const char* clocks, double* times_us, uint32_t n);  // as vnpu_replay
void vnpu_replay_release(int number);
// Value of a flattened chip key ("memory.ub_bytes") of the usual chip, "" when there is none.
const char* vnpu_chip_value(const char* key);
// Writes the timeline of this thread's last launch as Chrome-trace JSON: 0, or 1 when there is none
// (LaunchOptions::trace makes one) or the file can't be written. To be called while the kernel's binary is loaded.
int vnpu_trace_json(const char* path);
}
