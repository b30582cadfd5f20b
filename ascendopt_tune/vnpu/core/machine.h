// One AI core while a kernel runs on it: local memory, registers that instructions share, and the observers.
//
// Every instruction goes through Core::issue: it names its pipe, its cost and what it touches. Values are computed by
// the caller (semantics/, copy.cpp) at once, in program order; nothing here changes a value.
#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "chip.h"
#include "hazard.h"
#include "memory.h"
#include "trace.h"

namespace vnpu {

// What a kernel did wrong, as silicon would break: ends the launch. `kind` becomes the outcome.
struct KernelError : std::runtime_error {
  enum Kind { kOutOfBounds, kMisuse, kDeadlock, kUnsupported };
  KernelError(Kind kind, const std::string& what, const char* api, const void* pc)
      : std::runtime_error(what), kind(kind), api(api), pc(pc) {}
  Kind kind;
  const char* api;
  const void* pc;
};

struct Options {
  bool timing = true, hazards = true, auto_sync = true;
};

struct Access {
  Range range;
  bool write = false;
  bool gm = false;
  bool atomic = false;
};

enum class Atomic : uint8_t { None, Add, Max, Min };

class Core {
 public:
  Core(int index, int block_num, const Chip& chip, const Options& options);

  // ---- instructions ----
  // One instruction of `pipe` taking `cycles`; `transfer` (may be null) is moved under shared bandwidth.
  void issue(Pipe pipe, const char* api, const void* pc, double cycles, std::initializer_list<Access> accesses,
             const Transfer* transfer = nullptr);
  void issue(Pipe pipe, const char* api, const void* pc, double cycles, const Access* accesses, size_t n,
             const Transfer* transfer = nullptr);
  // Scalar work that no memory observer needs to see.
  void scalar(double cycles) { scalar_pending_ += cycles; }
  // One GetValue/SetValue of `bytes` at `p`, local or global.
  void scalar_access(const void* p, uint32_t bytes, bool write, const char* api, const void* pc);

  void set_flag(Pipe src, Pipe dst, int id, const void* pc);
  void wait_flag(Pipe src, Pipe dst, int id, const void* pc);
  void barrier(Pipe pipe);
  void barrier_all();
  void sync_all();
  void cross_set(Pipe pipe, int id, const void* pc);
  void cross_wait(int id, const void* pc);
  uint32_t crossed(int id) const { return crossed_[id]; }  // how often this core has set the flag

  // ---- memory ----
  // Checks a local range: inside local memory, inside one buffer, `align` bytes aligned. Throws KernelError.
  void check_local(const Range& range, uint32_t align, const char* api, const void* pc, const char* operand) const;
  // Checks a global range; returns its canonical address.
  uint64_t check_gm(const Range& range, bool write, const char* api, const void* pc, const char* operand);
  bool is_local(const void* p) const { return p >= local_ && p < local_ + local_bytes_; }
  uint8_t* local() { return local_; }
  uint32_t local_bytes() const { return local_bytes_; }
  uint32_t local_offset(const void* p) const { return static_cast<uint32_t>(static_cast<const uint8_t*>(p) - local_); }

  // TPipe's bump allocation in UB.
  void* allocate_local(uint32_t bytes);
  void reset_local();
  // Where the memory begins that allocate_local has not handed out, and how much of it kernels may use.
  uint8_t* local_rest() { return local_ + local_used_; }
  uint32_t local_rest_bytes() const {
    uint32_t usable = local_bytes_ - chip.ub_reserved_bytes;
    return usable > local_used_ ? usable - local_used_ : 0;
  }
  // Event ids of one pair of pipes; throws KernelError when all are taken.
  int allocate_event(Pipe src, Pipe dst, const void* pc);
  void release_event(Pipe src, Pipe dst, int id);

  const int index, block_num;
  const Chip& chip;
  const Options& options;

  // ---- state that instructions share ----
  uint64_t mask[2] = {~0ull, ~0ull};  // vector mask, normal mode: bit i enables lane i of a repeat
  bool counter_mode = false;          // counter mode: mask[0] is a number of elements
  uint64_t compare_mask[2] = {0, 0};  // result of the register form of Compare
  uint64_t dequant = 0;               // DEQSCALE register (SetDeqScale)
  uint64_t accumulator = 0;           // bits of the last accumulating sum (GetAccVal)
  uint64_t extreme = 0;               // bits of the last per-repeat maximum or minimum; its index in the high half
  uint16_t merged[4] = {};            // elements the last MrgSort took from each of its lists
  uint64_t va[8][8] = {};             // address registers of the transposing instructions (set_va_reg_sb)
  Atomic atomic = Atomic::None;
  DType atomic_dtype = DType::None;
  void* user_pipe = nullptr;         // GetTPipePtr()
  void* system_workspace = nullptr;  // GetSysWorkSpacePtr()
  uint64_t slack_writes = 0;         // bytes written past a tensor but inside its allocation

  Trace trace;
  HazardTracker hazards;

 private:
  void record(Record r);
  void flush_dependencies(Pipe pipe, const char* api, const void* pc);

  std::unique_ptr<uint8_t[]> storage_;
  uint8_t* local_;
  uint32_t local_bytes_;
  uint32_t local_used_ = 0;
  std::map<uint32_t, uint32_t> buffers_;  // offset -> bytes, buffers handed out by allocate_local
  uint64_t events_[kPipes][kPipes] = {};
  uint32_t crossed_[kCrossFlags] = {}, awaited_[kCrossFlags] = {};
  double scalar_pending_ = 0;
  const Allocation* recent_[4] = {};
  std::vector<uint64_t> dcache_;
};

// The core the calling code runs on. Only valid inside a launch.
Core& core();
void set_current_core(Core* core);
// Waits until every core of the launch has called it (machine side of SyncAll). Set by launch.cpp.
void meet_all_cores();
// Waits until every core has set cross-core flag `id` `times` times.
void meet_flag(int id, uint32_t times);

}  // namespace vnpu
