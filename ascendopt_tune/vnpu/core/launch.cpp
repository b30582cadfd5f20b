#include "launch.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "guard.h"
#include "l2.h"
#include "machine.h"
#include "report.h"
#include "timing.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace vnpu {
namespace {

constexpr int kVectorCoreException = 507035;  // ACL_ERROR_RT_VECTOR_CORE_EXCEPTION
constexpr int kInvalidParam = 107000;         // ACL_ERROR_RT_PARAM_INVALID
constexpr size_t kStackBytes = 8 << 20;       // a kernel's stack; host compilers spill more than the device's 32 KB

struct Settings {
  std::mutex mutex;
  Chip chip;
  bool loaded = false, timing = true, hazards = true, trace = false, warm = true, log = false, writes = false;
  bool guard = true;
  uint8_t fill = 0xff;
};

Settings& settings() {
  static Settings* s = new Settings;
  return *s;
}

thread_local std::string last_error, last_log;

const Chip& current_chip(Settings& s) {
  if (!s.loaded) {
    const char* name = getenv("ASCENDOPT_CHIP");
    s.chip = load_chip(name && *name ? name : "ascend910b2");
    s.loaded = true;
  }
  return s.chip;
}

// What a core occupies while its kernel runs. Kept for the next one: fresh memory costs more than running a short
// kernel.
struct Seat {
  void* stack = nullptr;
  LocalMemory memory;

  Seat() {
    stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) throw std::bad_alloc();
    mprotect(stack, 4096, PROT_NONE);  // an endless recursion faults here instead of in another core's stack
  }
  Seat(const Seat&) = delete;
  ~Seat() { munmap(stack, kStackBytes); }
};

// A core as a coroutine: it runs until its kernel ends or it waits for the other cores. It gets a seat and a core with
// its first turn, and gives the seat back when it is done; with the access log on, when the launch is.
struct Fiber {
  ucontext_t context;
  std::unique_ptr<Seat> seat;
  std::unique_ptr<Core> core;
  bool done = false, waiting = false;
  int flag = -1;  // waiting for this cross-core flag, for the `times`-th time; -1: at SyncAll
  uint32_t times = 0;
  std::unique_ptr<KernelError> error;

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  ~Fiber() { stand_up(); }
  void sit_down(int index);
  void stand_up();
  uint32_t crossed(int id) const { return core ? core->crossed(id) : 0; }
};

struct Run {
  const KernelInfo* kernel = nullptr;
  void** args = nullptr;
  const Chip& chip;
  const Options& options;
  int block_dim = 0;
  bool keep_writes = false;
  Reach image;  // the binary's segments; none: the kernel's own loads and stores are not looked at
  ucontext_t scheduler;
  Fiber* active = nullptr;
  const void* stack = nullptr;  // the scheduler's
  size_t stack_bytes = 0;
};
thread_local Run* run = nullptr;

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

void fiber_main();

std::vector<std::unique_ptr<Seat>>& free_seats() {  // launches take turns (Settings::mutex)
  static auto* seats = new std::vector<std::unique_ptr<Seat>>;
  return *seats;
}

void Fiber::sit_down(int index) {
  if (free_seats().empty()) free_seats().push_back(std::make_unique<Seat>());
  seat = std::move(free_seats().back());
  free_seats().pop_back();
  core = std::make_unique<Core>(index, run->block_dim, run->chip, run->options, seat->memory);
  if (run->keep_writes) core->hazards.keep_writes();
  getcontext(&context);
  context.uc_stack.ss_sp = seat->stack;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, fiber_main, 0);
}

void Fiber::stand_up() {
  if (!seat) return;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(static_cast<char*>(seat->stack) + 4096, kStackBytes - 4096);  // frames left behind
#endif
  if (core) core->leave_memory();
  free_seats().push_back(std::move(seat));
}

// From a core back to the scheduler; returns when it is resumed.
void yield(Fiber& f) {
  void* kept = nullptr;
  leave_stack(f.done ? nullptr : &kept, run->stack, run->stack_bytes);
  swapcontext(&f.context, &run->scheduler);
  enter_stack(kept, &run->stack, &run->stack_bytes);
}

void fiber_main() {
  enter_stack(nullptr, &run->stack, &run->stack_bytes);
  Fiber& f = *run->active;
  try {
    run->kernel->entry(run->args);
    f.core->finish();
  } catch (const KernelError& e) {
    f.error = std::make_unique<KernelError>(e);
  }
  f.done = true;
  yield(f);
}

void resume(Fiber& f) {
  run->active = &f;
  set_current_core(f.core.get());
  if (run->image.bytes != 0) guard_enter({reinterpret_cast<uintptr_t>(f.seat->stack), kStackBytes}, run->image);
  void* kept = nullptr;
  leave_stack(&kept, f.seat->stack, kStackBytes);
  swapcontext(&run->scheduler, &f.context);
  enter_stack(kept, nullptr, nullptr);
  guard_enter({}, {});
  set_current_core(nullptr);
}

// Nobody can go on: an error of the first core that waits.
KernelError* stuck(std::vector<std::unique_ptr<Fiber>>& fibers, size_t at_sync) {
  Fiber& f = **std::find_if(fibers.begin(), fibers.end(), [](const auto& g) { return g->waiting; });
  std::string all = std::to_string(fibers.size()), what = "SyncAll";
  size_t there = at_sync;
  if (f.flag >= 0) {
    what = "CrossCoreSetFlag(" + std::to_string(f.flag) + ")";
    there = static_cast<size_t>(
        std::count_if(fibers.begin(), fibers.end(), [&](const auto& g) { return g->crossed(f.flag) >= f.times; }));
  }
  f.error = std::make_unique<KernelError>(KernelError::kDeadlock,
                                          what + " was reached by " + std::to_string(there) + " of " + all +
                                              " cores, the others have returned or wait for something else: the " +
                                              "waiting cores would wait for ever",
                                          f.flag >= 0 ? "CrossCoreWaitFlag" : "SyncAll", nullptr);
  return f.error.get();
}

// Runs all cores to their end, core by core between meetings. Returns the first error in core order.
KernelError* execute(std::vector<std::unique_ptr<Fiber>>& fibers) {
  auto may_go = [&](const Fiber& f) {
    if (!f.waiting) return true;
    return f.flag >= 0 && std::all_of(fibers.begin(), fibers.end(),
                                      [&](const auto& other) { return other->crossed(f.flag) >= f.times; });
  };
  while (true) {
    size_t done = 0, at_sync = 0;
    bool progress = false;
    for (size_t i = 0; i < fibers.size(); i++) {
      auto& f = fibers[i];
      if (!f->done && may_go(*f)) {
        f->waiting = false;
        if (!f->core) f->sit_down(static_cast<int>(i));
        resume(*f);
        if (f->done && !run->options.log) f->stand_up();
        progress = true;
      }
      if (f->error) return f->error.get();
      done += f->done;
      at_sync += f->waiting && f->flag < 0;
    }
    if (done == fibers.size()) return nullptr;
    if (at_sync == fibers.size())
      for (auto& f : fibers) f->waiting = false;
    else if (!progress)
      return stuck(fibers, at_sync);
  }
}

// Bytes [begin, end) of global memory in the words of the kernel's caller: counted in their allocation, which is named
// by the parameter that points there.
std::string name_buffer(uint64_t& begin, uint64_t& end, const KernelInfo& kernel, void** args) {
  const Allocation* a = gm_find_canonical(begin);
  if (!a) return "";
  begin -= a->canonical;
  end -= a->canonical;
  std::string name = "an allocation of " + std::to_string(a->payload) + " B";
  for (uint32_t i = 0; i < kernel.param_count; i++) {
    uint64_t value = 0;
    if (kernel.param_sizes[i] != sizeof value) continue;
    std::memcpy(&value, args[i], sizeof value);
    if (value >= a->base && value < a->base + a->allocated) return name + ", kernel parameter " + std::to_string(i);
  }
  return name;
}

}  // namespace

void abandon(const KernelError& error) {
  Fiber& f = *run->active;
  f.error = std::make_unique<KernelError>(error);
  f.done = true;
  yield(f);
  __builtin_unreachable();
}

void meet_flag(int id, uint32_t times) {
  Fiber& f = *run->active;
  f.waiting = true;
  f.flag = id;
  f.times = times;
  yield(f);
}

void meet_all_cores() {
  Fiber& f = *run->active;
  f.waiting = true;
  f.flag = -1;
  yield(f);
}

LaunchResult launch(const KernelInfo& kernel, uint32_t block_dim, void** args) {
  Settings& s = settings();
  std::lock_guard lock(s.mutex);
  LaunchResult result;
  Report report;
  report.kernel = kernel.name;
  report.block_dim = block_dim;
  auto finish = [&](int status, const std::string& message) {
    result.status = report.status = status;
    result.message = report.message = message;
    publish(std::move(report));
    return result;
  };
  try {
    current_chip(s);
  } catch (const std::exception& e) {
    return finish(kInvalidParam, e.what());
  }
  const Chip& chip = s.chip;
  report.chip = chip.name;
  if (kernel.core_type != 0)
    return finish(kInvalidParam, std::string("kernel ") + kernel.name +
                                     " needs cube cores (AIC or mixed); the virtual NPU runs vector kernels only");
  if (block_dim == 0 || block_dim > 65535)
    return finish(kInvalidParam, "block dim " + std::to_string(block_dim) + " is outside 1..65535");

  // What the compiler orders by itself costs time and hides hazards; without either observer nobody has to know.
  Options options{s.timing, s.hazards, kernel.auto_sync && (s.timing || s.hazards), s.log, s.fill};
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (uint32_t i = 0; i < block_dim; i++) fibers.push_back(std::make_unique<Fiber>());
  const Reach image = s.guard ? image_of(reinterpret_cast<const void*>(kernel.entry)) : Reach{};
  Run local{&kernel, args, chip, options, static_cast<int>(block_dim), s.writes, image, {}, nullptr, nullptr, 0};
  run = &local;
  KernelError* error = execute(fibers);
  run = nullptr;
  std::vector<Core*> cores;  // all; with an error those that have begun
  for (auto& f : fibers)
    if (f->core) cores.push_back(f->core.get());

  if (s.log) {
    std::vector<const AccessLog*> logs;
    std::vector<const uint8_t*> memories;
    for (Core* c : cores) logs.push_back(&c->log), memories.push_back(c->local());
    last_log = access_log_json(logs, memories, chip.ub_bytes);
  }
  std::set<std::string> relies_on;
  std::vector<const HazardTracker*> trackers;
  for (Core* c : cores) {
    trackers.push_back(&c->hazards);
    report.slack_writes += c->slack_writes;
    for (std::string& what : c->hazards.relies_on()) relies_on.insert(std::move(what));
    for (const HazardReport& h : c->hazards.reports)
      if (report.hazards.size() < kMaxHazards) report.hazards.push_back(h);
  }
  report.relies_on.assign(relies_on.begin(), relies_on.end());
  if (error) {
    report.errors.push_back(*error);
    return finish(kVectorCoreException, error->what());
  }
  for (Core* c : cores) c->hazards.forget_overwritten();
  if (s.hazards)
    for (HazardReport& h : cross_core_hazards(trackers, kMaxHazards)) report.hazards.push_back(std::move(h));
  for (Core* c : cores)
    for (UnwrittenUse& u : standing(c->unwritten.uses)) {
      if (report.unwritten.size() >= kMaxHazards) break;
      u.core = c->index;
      report.unwritten.push_back(std::move(u));
    }
  for (HazardReport& h : report.hazards)
    if (h.gm) h.buffer = name_buffer(h.begin, h.end, kernel, args);
  for (UnwrittenUse& u : report.unwritten) {
    if (u.origin_gm) u.buffer = name_buffer(u.begin, u.end, kernel, args);
    if (u.sink_end) u.sink_buffer = name_buffer(u.sink_begin, u.sink_end, kernel, args);
  }
  if (s.timing) {
    std::vector<const Trace*> traces;
    for (Core* c : cores) traces.push_back(&c->trace);
    // Warm, as a measurement on hardware is: the first pass brings into L2 what stays there. Profilers that empty L2
    // before they replay a kernel measure it cold.
    L2State l2;
    if (s.warm) simulate(traces, chip, l2, nullptr);
    report.times = simulate(traces, chip, l2, s.trace ? &report.timeline : nullptr);
    if (!report.times.deadlock.empty()) {
      report.errors.emplace_back(KernelError::kDeadlock, "deadlock: " + report.times.deadlock, "", nullptr);
      return finish(kVectorCoreException, "deadlock: " + report.times.deadlock);
    }
    report.profile(traces, chip);
    result.task_duration_us = report.task_duration_us;
  }
  return finish(0, "");
}

}  // namespace vnpu

extern "C" {

const char* vnpu_access_log() { return vnpu::last_log.c_str(); }
const char* vnpu_last_error() { return vnpu::last_error.c_str(); }

int vnpu_set_option(const char* name, const char* value) {
  vnpu::Settings& s = vnpu::settings();
  std::lock_guard lock(s.mutex);
  std::string n = name ? name : "", v = value ? value : "";
  try {
    if (n == "chip") {
      s.chip = vnpu::load_chip(v);
      s.loaded = true;
      return 0;
    }
    if (n == "fill") {
      size_t used = 0;
      int value = std::stoi(v, &used);
      if (used != v.size() || value < 0 || value > 255) throw std::invalid_argument("fill is a byte, 0 to 255");
      s.fill = static_cast<uint8_t>(value);
      return 0;
    }
  } catch (const std::exception& e) {
    vnpu::last_error = e.what();
    return 1;
  }
  bool* flag = n == "timing"    ? &s.timing
               : n == "hazards" ? &s.hazards
               : n == "trace"   ? &s.trace
               : n == "warm"    ? &s.warm
               : n == "log"     ? &s.log
               : n == "writes"  ? &s.writes
               : n == "guard"   ? &s.guard
                                : nullptr;
  if (!flag || (v != "0" && v != "1")) {
    vnpu::last_error = "unknown option or value `" + n + "=" + v +
                       "`; options: chip=<name>, timing=0|1, hazards=0|1, trace=0|1, warm=0|1, log=0|1, writes=0|1, "
                       "guard=0|1, fill=0..255";
    return 1;
  }
  *flag = v == "1";
  return 0;
}

const char* vnpu_chip_value(const char* key) {
  vnpu::Settings& s = vnpu::settings();
  std::lock_guard lock(s.mutex);
  try {
    const auto& values = vnpu::current_chip(s).values;
    auto it = values.find(key);
    return it == values.end() ? "" : it->second.c_str();
  } catch (const std::exception& e) {
    vnpu::last_error = e.what();
    return "";
  }
}

}  // extern "C"
