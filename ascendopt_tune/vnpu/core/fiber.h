// A core as a coroutine: it runs until its kernel ends or it waits for the other cores.
#pragma once
#include <ucontext.h>

#include <cstdint>
#include <memory>

#include "detached.h"
#include "guard.h"
#include "launch.h"
#include "machine.h"

namespace vnpu {

// What the cores of one launch have in common.
struct Task {
  const KernelInfo& kernel;
  Groups groups;
  void** args;
  const Chip& chip;
  const Options& options;
  Crossing& crossing;
  bool keep_writes = false;
  Reach code;            // the binary's segments
  bool guarded = false;  // the kernel's own loads and stores are looked at
};

// What a core occupies while its kernel runs. Kept for the next one: fresh memory costs more than running a short
// kernel.
struct Seat {
  void* stack = nullptr;
  LocalMemory memory;

  Seat();
  Seat(const Seat&) = delete;
  ~Seat();
  // What an earlier core left on the stack must reach nobody: every byte that kernels reach is `fill`, or 0.
  void clean(uint8_t fill);
  // Looks how much of the stack a core has used.
  void look();

 private:
  bool filled_ = false;  // by more than 0
};

// It gets a seat and a core with its first turn, and gives the seat back when it is done; with the access log on, when
// the launch is. All turns of one fiber are on one thread.
struct Fiber {
  ucontext_t context;
  std::unique_ptr<Seat> seat;
  std::unique_ptr<Core> core;
  std::unique_ptr<Detached> detached;  // while it runs beside others
  bool done = false, waiting = false;
  int flag = -1;  // that it waits for: one between cores, or behind those a meeting
  std::unique_ptr<KernelError> error;

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  ~Fiber() { stand_up(); }

  void sit_down(int index, const Task& task);
  void stand_up();
  // One turn: returns when the kernel has ended, was abandoned, or waits.
  void resume(const Task& task);
};

}  // namespace vnpu
