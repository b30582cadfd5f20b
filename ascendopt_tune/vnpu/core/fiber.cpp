#include "fiber.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>
#include <vector>

#include "division.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace vnpu {
namespace {

constexpr size_t kStackBytes = 9 << 20;  // a kernel's stack; host compilers spill more than the device's 32 KB
// Its end, where nothing may lie: larger than any frame that a kernel may have (build/machine_code.py), so that no call
// steps over it into memory of others.
constexpr size_t kGuardBytes = 1 << 20;

// The turn that this thread is giving a fiber.
struct Turn {
  Fiber& fiber;
  const Task& task;
  ucontext_t scheduler{};
  const void* stack = nullptr;  // the scheduler's
  size_t stack_bytes = 0;
};
thread_local Turn* turn = nullptr;

constexpr size_t kShallow = 16 << 10, kDeep = 1 << 20;  // bytes of a stack that kernels use; that a careless one uses
constexpr size_t kPage = 4096;
std::atomic<size_t> used{0};  // bytes of a stack that kernels of this process have used; 0: none has run yet

// AddressSanitizer has to be told which stack is in use. `keep` remembers what it knows of the stack that is left.
void leave_stack([[maybe_unused]] void** keep, [[maybe_unused]] const void* to, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(keep, to, bytes);
#endif
}
void enter_stack([[maybe_unused]] void* kept, [[maybe_unused]] const void** from, [[maybe_unused]] size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(kept, from, bytes);
#endif
}

// From a core back to the scheduler; returns when it is resumed.
void yield(Fiber& f) {
  void* kept = nullptr;
  leave_stack(f.done ? nullptr : &kept, turn->stack, turn->stack_bytes);
  swapcontext(&f.context, &turn->scheduler);
  enter_stack(kept, &turn->stack, &turn->stack_bytes);
}

void fiber_main() {
  enter_stack(nullptr, &turn->stack, &turn->stack_bytes);
  Fiber& f = turn->fiber;
  try {
    const Task& task = turn->task;
    const bool other_pass = task.groups.mixed() && core().kind == CoreKind::Cube;
    (other_pass ? *task.kernel.cube_entry : task.kernel.entry)(task.args);
    core().finish();
  } catch (const KernelError& e) {
    f.error = std::make_unique<KernelError>(e);
  }
  f.done = true;
  yield(f);
}

struct Seats {
  std::mutex mutex;
  std::vector<std::unique_ptr<Seat>> free;
};

Seats& seats() {
  static auto* instance = new Seats;
  return *instance;
}

}  // namespace

Seat::Seat() {
  stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) throw std::bad_alloc();
  mprotect(stack, kGuardBytes, PROT_NONE);  // an endless recursion faults here instead of in another core's stack
}

Seat::~Seat() { munmap(stack, kStackBytes); }

void Seat::clean(uint8_t fill) {
  char* const end = static_cast<char*>(stack) + kStackBytes;
  madvise(static_cast<char*>(stack) + 4096, kStackBytes - 4096 - kShallow, MADV_DONTNEED);
  // Filling what no kernel reaches would take longer than most launches, in every core.
  const size_t most = used == 0 ? kDeep : std::min(kDeep, used + kPage);
  const size_t bytes = fill == 0 ? kShallow : std::max(kShallow, most);
  std::memset(end - bytes, fill, bytes);
  filled_ = fill != 0;
}

void Seat::look() {
  unsigned char present[kDeep / kPage] = {};
  if (filled_ || mincore(static_cast<char*>(stack) + kStackBytes - kDeep, kDeep, present) != 0) return;
  const auto* first = std::find_if(std::begin(present), std::end(present), [](unsigned char p) { return p & 1; });
  const size_t bytes = static_cast<size_t>(std::end(present) - first) * kPage;
  for (size_t most = used; bytes > most && !used.compare_exchange_weak(most, bytes);) {
  }
}

void Fiber::sit_down(int index, const Task& task) {
  {
    const std::lock_guard lock(seats().mutex);
    if (seats().free.empty()) seats().free.push_back(std::make_unique<Seat>());
    seat = std::move(seats().free.back());
    seats().free.pop_back();
  }
  core = std::make_unique<Core>(task.groups, index, task.crossing, task.chip, task.options, seat->memory);
  core->detached = detached.get();
  seat->clean(task.options.stack);
  if (task.keep_writes) core->hazards.keep_writes();
  getcontext(&context);
  context.uc_stack.ss_sp = seat->stack;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, fiber_main, 0);
}

void Fiber::stand_up() {
  if (!seat) return;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(static_cast<char*>(seat->stack) + kGuardBytes,
                                kStackBytes - kGuardBytes);  // frames left behind
#endif
  if (core) core->leave_memory();
  seat->look();
  const std::lock_guard lock(seats().mutex);
  seats().free.push_back(std::move(seat));
}

void Fiber::resume(const Task& task) {
  Turn here{*this, task};
  turn = &here;
  set_current_core(core.get());
  if (task.guarded)
    guard_enter({reinterpret_cast<uintptr_t>(seat->stack), kStackBytes}, task.code, task.kernel.guarded);
  divisions_of(task.code, task.options.stack);
  void* kept = nullptr;
  leave_stack(&kept, seat->stack, kStackBytes);
  swapcontext(&here.scheduler, &context);
  enter_stack(kept, nullptr, nullptr);
  guard_enter({}, {}, false);
  divisions_of({}, 0);
  set_current_core(nullptr);
  turn = nullptr;
}

void abandon(const KernelError& error) {
  Fiber& f = turn->fiber;
  f.error = std::make_unique<KernelError>(error);
  f.done = true;
  yield(f);
  __builtin_unreachable();
}

void give_way(int id) {
  Fiber& f = turn->fiber;
  f.waiting = true;
  f.flag = id;
  yield(f);
}

}  // namespace vnpu
