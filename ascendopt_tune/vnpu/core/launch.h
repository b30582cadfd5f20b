// Running a kernel: all cores of one launch, then the observers' verdict.
#pragma once
#include <cstdint>
#include <string>

#include "memory.h"

namespace vnpu {

// A kernel of a loaded binary; made by VNPU_EXPORT_KERNEL (include/vnpu_export.h). The layout is part of the binary
// format: add fields at the end only.
struct KernelInfo {
  const char* name;
  void (*entry)(void** args);  // args[i] points at parameter i
  uint32_t param_count;
  const uint32_t* param_sizes;  // bytes
  bool auto_sync;               // built with --cce-auto-sync=on
  bool guarded;                 // its own loads and stores are checked (guard.h); in what was padding, so 0 if unknown
  int core_type;                // 0 vector cores, 1 cube cores, 2 / 3 mixed 1:1 / 1:2
};

struct LaunchResult {
  int status = 0;               // 0, or the aclError the stream reports at its next synchronization
  double task_duration_us = 0;  // modelled; 0 when timing is off
  std::string message;          // empty when status is 0
};

// Runs the kernel on `block_dim` cores, now. Thread-safe; launches of one process run one after another. `variables`:
// whether its binary has any, which are all cores'.
LaunchResult launch(const KernelInfo& kernel, uint32_t block_dim, void** args, bool variables);

// What vnpu_last_error() answers next.
void set_last_error(const std::string& what);

}  // namespace vnpu

extern "C" {
// JSON document about the last launch of this thread: status, message, profile, hazards, errors. See docs.
const char* vnpu_last_report();
// Options: chip=<name or file.toml>, timing=0|1, hazards=0|1, trace=0|1, log=0|1,
// state=warm|flushed|cold (what a launch is timed as, see State in timing.h), fill=0..255 (what unwritten local memory
// holds), stack=0..255 (the same of a kernel's stack), guard=0|1 (whether a kernel's own loads and stores are checked,
// see guard.h), threads=1..256 (on which the cores of a launch run as long as their order can't matter; default:
// ASCENDOPT_CORE_THREADS, else 1). Returns 0, or 1 for an unknown name or value (the message is then the next
// vnpu_last_error()).
int vnpu_set_option(const char* name, const char* value);
const char* vnpu_last_error();
// How many cores of this thread's last launch ran beside others (option threads); it is no part of the report, which
// is the same either way.
uint32_t vnpu_cores_beside();
// What the cores of this thread's last launch issued and touched (needs log=1); see access_log.h.
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
// Value of a flattened chip key ("memory.ub_bytes") of the chip in force, "" when there is none.
const char* vnpu_chip_value(const char* key);
// Writes the timeline of this thread's last launch as Chrome-trace JSON: 0, or 1 when there is none (option trace=1
// makes one) or the file can't be written. To be called while the kernel's binary is loaded.
int vnpu_trace_json(const char* path);
}
