#include "launch.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "machine.h"
#include "replay.h"
#include "report.h"
#include "schedule.h"

namespace vnpu {
namespace {

constexpr int kVectorCoreException = 507035;  // ACL_ERROR_RT_VECTOR_CORE_EXCEPTION
constexpr int kInvalidParam = 107000;         // ACL_ERROR_RT_PARAM_INVALID
constexpr int kMostThreads = 256;

struct Settings {
  std::mutex mutex;
  Chip chip;
  bool loaded = false, timing = true, hazards = true, trace = false, log = false, writes = false;
  bool guard = true;
  uint8_t fill = 0xff, stack = 0;
  int threads = 1;
  State state = State::Warm;
};

int number(const std::string& text, int least, int most, const char* what) {
  size_t used = 0;
  const int value = std::stoi(text, &used);
  if (used != text.size() || value < least || value > most) throw std::invalid_argument(what);
  return value;
}

State state_called(const std::string& name) {
  if (name == "warm") return State::Warm;
  if (name == "flushed") return State::Flushed;
  if (name == "cold") return State::Cold;
  throw std::invalid_argument("state is warm, flushed or cold");
}

Settings& settings() {
  static Settings* s = [] {
    auto* made = new Settings;
    const char* threads = getenv("ASCENDOPT_CORE_THREADS");
    // Something that is no number is ignored here: ascendopt_tune/settings.py refuses it.
    if (threads && *threads) made->threads = std::clamp(atoi(threads), 1, kMostThreads);
    return made;
  }();
  return *s;
}

thread_local std::string last_error, last_log;
thread_local size_t last_beside = 0;

const Chip& current_chip(Settings& s) {
  if (!s.loaded) {
    const char* name = getenv("ASCENDOPT_CHIP");
    s.chip = load_chip(name && *name ? name : "ascend910b2");
    s.loaded = true;
  }
  return s.chip;
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

void set_last_error(const std::string& what) { last_error = what; }

LaunchResult launch(const KernelInfo& kernel, uint32_t block_dim, void** args, bool variables) {
  Settings& s = settings();
  std::lock_guard lock(s.mutex);
  keep(nullptr);
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
  Options options{s.timing, s.hazards, kernel.auto_sync && (s.timing || s.hazards), s.log, s.fill, s.stack};
  Fibers fibers;
  for (uint32_t i = 0; i < block_dim; i++) fibers.push_back(std::make_unique<Fiber>());
  const Reach image = s.guard ? image_of(reinterpret_cast<const void*>(kernel.entry)) : Reach{};
  const Task task{kernel, args, chip, options, static_cast<int>(block_dim), s.writes, image};
  // Cores may only run beside each other where every store is seen; logs and kept writes look into memory meanwhile.
  const bool seen = kernel.guarded && image.bytes != 0 && guard_answers() && !variables;
  const bool beside = s.threads > 1 && block_dim > 1 && !s.log && !s.writes && seen;
  last_beside = beside ? run_beside(fibers, task, std::min<size_t>(s.threads, block_dim)) : 0;
  KernelError* error = run_in_turn(fibers, task);
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
  std::map<std::pair<int, bool>, std::pair<const Allocation*, uint64_t>> slack;
  std::vector<const HazardTracker*> trackers;
  for (Core* c : cores) {
    trackers.push_back(&c->hazards);
    for (std::string& what : c->hazards.relies_on()) relies_on.insert(std::move(what));
    if (c->asked_clock) relies_on.insert("what time it is (GetSystemCycle)");
    for (const auto& [allocation, past] : c->slack)
      for (const bool write : {false, true}) {
        auto& [where, bytes] = slack[{allocation->index, write}];
        where = allocation;
        bytes = std::max(bytes, past[write ? 1 : 0]);
      }
    for (const HazardReport& h : c->hazards.reports)
      if (report.hazards.size() < kMaxHazards) report.hazards.push_back(h);
  }
  report.relies_on.assign(relies_on.begin(), relies_on.end());
  for (const auto& [place, use] : slack) {
    uint64_t begin = use.first->canonical, end = begin;
    if (use.second != 0) report.slack.push_back({name_buffer(begin, end, kernel, args), place.second, use.second});
  }
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
    std::vector<Trace> traces;
    for (Core* c : cores) traces.push_back(std::move(c->trace));
    auto replay = std::make_shared<const Replay>(std::move(traces), chip, s.state);
    report.times = replay->times(chip, s.trace ? &report.timeline : nullptr);
    if (!report.times.deadlock.empty()) {
      report.errors.emplace_back(KernelError::kDeadlock, "deadlock: " + report.times.deadlock, "", nullptr);
      return finish(kVectorCoreException, "deadlock: " + report.times.deadlock);
    }
    report.profile(replay->traces(), chip);
    keep(std::move(replay));
    result.task_duration_us = report.task_duration_us;
  }
  return finish(0, "");
}

}  // namespace vnpu

extern "C" {

const char* vnpu_access_log() { return vnpu::last_log.c_str(); }
uint32_t vnpu_cores_beside() { return static_cast<uint32_t>(vnpu::last_beside); }
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
      s.fill = static_cast<uint8_t>(vnpu::number(v, 0, 255, "fill is a byte, 0 to 255"));
      return 0;
    }
    if (n == "stack") {
      s.stack = static_cast<uint8_t>(vnpu::number(v, 0, 255, "stack is a byte, 0 to 255"));
      return 0;
    }
    if (n == "threads") {
      s.threads = vnpu::number(v, 1, vnpu::kMostThreads, "threads is a number from 1 to 256");
      return 0;
    }
    if (n == "state") {
      s.state = vnpu::state_called(v);
      return 0;
    }
  } catch (const std::exception& e) {
    vnpu::last_error = e.what();
    return 1;
  }
  bool* flag = n == "timing"    ? &s.timing
               : n == "hazards" ? &s.hazards
               : n == "trace"   ? &s.trace
               : n == "log"     ? &s.log
               : n == "writes"  ? &s.writes
               : n == "guard"   ? &s.guard
                                : nullptr;
  if (!flag || (v != "0" && v != "1")) {
    vnpu::last_error = "unknown option or value `" + n + "=" + v +
                       "`; options: chip=<name>, timing=0|1, hazards=0|1, trace=0|1, log=0|1, writes=0|1, "
                       "guard=0|1, state=warm|flushed|cold, fill=0..255, stack=0..255, threads=1..256";
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
