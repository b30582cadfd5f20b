#include "launch.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "findings.h"
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

std::string unknown_option(const char* name, const char* value) {
  return std::string("unknown option or value `") + (name ? name : "") + "=" + (value ? value : "") +
         "`; options: chip=<name>, timing=0|1, hazards=0|1, trace=0|1, log=0|1, writes=0|1, "
         "guard=0|1, state=warm|flushed|cold, fill=0..255, stack=0..255, threads=1..256";
}

using Setter = std::function<void(Settings&, const std::string&)>;

Setter flag(const char* name, bool Settings::* member) {
  return [=](Settings& s, const std::string& v) {
    if (v != "0" && v != "1") throw std::invalid_argument(unknown_option(name, v.c_str()));
    s.*member = v == "1";
  };
}

Setter byte(const char* what, uint8_t Settings::* member) {
  return [=](Settings& s, const std::string& v) { s.*member = static_cast<uint8_t>(number(v, 0, 255, what)); };
}

const std::map<std::string, Setter>& setters() {
  static const auto* const all = new std::map<std::string, Setter>{
      {"chip", [](Settings& s, const std::string& v) { s.chip = load_chip(v), s.loaded = true; }},
      {"fill", byte("fill is a byte, 0 to 255", &Settings::fill)},
      {"stack", byte("stack is a byte, 0 to 255", &Settings::stack)},
      {"threads",
       [](Settings& s, const std::string& v) {
         s.threads = number(v, 1, kMostThreads, "threads is a number from 1 to 256");
       }},
      {"state", [](Settings& s, const std::string& v) { s.state = state_called(v); }},
      {"timing", flag("timing", &Settings::timing)},
      {"hazards", flag("hazards", &Settings::hazards)},
      {"trace", flag("trace", &Settings::trace)},
      {"log", flag("log", &Settings::log)},
      {"writes", flag("writes", &Settings::writes)},
      {"guard", flag("guard", &Settings::guard)},
  };
  return *all;
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

// Why the kernel is not even started; "" when it is.
std::string refusal(const KernelInfo& kernel, uint32_t block_dim) {
  if (kernel.core_type != 0)
    return std::string("kernel ") + kernel.name +
           " needs cube cores (AIC or mixed); the virtual NPU runs vector kernels only";
  if (block_dim == 0 || block_dim > 65535) return "block dim " + std::to_string(block_dim) + " is outside 1..65535";
  return "";
}

// Cores may only run beside each other where every store is seen; logs and kept writes look into memory meanwhile.
bool may_run_beside(const Settings& s, const Task& task, bool variables) {
  const bool seen = task.kernel.guarded && task.image.bytes != 0 && guard_answers() && !variables;
  return s.threads > 1 && task.block_dim > 1 && !s.log && !s.writes && seen;
}

// Those that have begun: with an error not all.
std::vector<Core*> cores_of(const Fibers& fibers) {
  std::vector<Core*> cores;
  for (const auto& f : fibers)
    if (f->core) cores.push_back(f->core.get());
  return cores;
}

std::string access_log(const std::vector<Core*>& cores, uint32_t local_bytes) {
  std::vector<const AccessLog*> logs;
  std::vector<const uint8_t*> memories;
  for (Core* c : cores) logs.push_back(&c->log), memories.push_back(c->local());
  return access_log_json(logs, memories, local_bytes);
}

// Plays the traces: fills the report's times. Returns what waits for ever, "" when nothing does.
std::string model_time(const std::vector<Core*>& cores, const Settings& s, Report& report) {
  std::vector<Trace> traces;
  for (Core* c : cores) traces.push_back(std::move(c->trace));
  auto replay = std::make_shared<const Replay>(std::move(traces), s.chip, s.state);
  report.times = replay->times(s.chip, s.trace ? &report.timeline : nullptr);
  if (!report.times.deadlock.empty()) return "deadlock: " + report.times.deadlock;
  report.profile(replay->traces(), s.chip);
  keep(std::move(replay));
  return "";
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
  if (const std::string why = refusal(kernel, block_dim); !why.empty()) return finish(kInvalidParam, why);

  // What the compiler orders by itself costs time and hides hazards; without either observer nobody has to know.
  Options options{s.timing, s.hazards, kernel.auto_sync && (s.timing || s.hazards), s.log, s.fill, s.stack};
  Fibers fibers;
  for (uint32_t i = 0; i < block_dim; i++) fibers.push_back(std::make_unique<Fiber>());
  const Reach image = s.guard ? image_of(reinterpret_cast<const void*>(kernel.entry)) : Reach{};
  const Task task{kernel, args, chip, options, static_cast<int>(block_dim), s.writes, image};
  last_beside =
      may_run_beside(s, task, variables) ? run_beside(fibers, task, std::min<size_t>(s.threads, block_dim)) : 0;
  KernelError* error = run_in_turn(fibers, task);
  const std::vector<Core*> cores = cores_of(fibers);

  if (s.log) last_log = access_log(cores, chip.ub_bytes);
  const BufferNames names{kernel, args};
  tell_habits(cores, names, report);
  if (error) {
    report.errors.push_back(*error);
    return finish(kVectorCoreException, error->what());
  }
  tell_findings(cores, names, s.hazards, report);
  if (s.timing) {
    if (const std::string deadlock = model_time(cores, s, report); !deadlock.empty()) {
      report.errors.emplace_back(KernelError::kDeadlock, deadlock, "", nullptr);
      return finish(kVectorCoreException, deadlock);
    }
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
  try {
    const auto& setters = vnpu::setters();
    const auto found = setters.find(name ? name : "");
    if (found == setters.end()) throw std::invalid_argument(vnpu::unknown_option(name, value));
    found->second(s, value ? value : "");
    return 0;
  } catch (const std::exception& e) {
    vnpu::last_error = e.what();
    return 1;
  }
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
