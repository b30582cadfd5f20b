#include "launch.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "division.h"
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

std::mutex one_at_a_time;

// What ASCENDOPT_CORE_THREADS says. Something that is no number is ignored here: ascendopt_tune/settings.py refuses it.
uint32_t usual_threads() {
  static const int threads = [] {
    const char* said = getenv("ASCENDOPT_CORE_THREADS");
    return said && *said ? std::clamp(atoi(said), 1, kMostThreads) : 1;
  }();
  return static_cast<uint32_t>(threads);
}

// A chip, read once for as long as its file is the same. Throws std::runtime_error for one that doesn't exist.
std::shared_ptr<const Chip> chip_called(const std::string& name) {
  using Stamp = std::pair<std::filesystem::file_time_type, uintmax_t>;
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::pair<Stamp, std::shared_ptr<const Chip>>>;
  Stamp stamp{};
  if (name.find('/') != std::string::npos || name.find('.') != std::string::npos) {  // a file
    std::error_code ignored;
    stamp = {std::filesystem::last_write_time(name, ignored), std::filesystem::file_size(name, ignored)};
  }
  const std::lock_guard lock(mutex);
  auto& [seen, chip] = (*known)[name];
  if (!chip || seen != stamp) {
    chip = std::make_shared<const Chip>(load_chip(name));
    seen = stamp;
  }
  return chip;
}

// The one in force where a launch names none.
std::shared_ptr<const Chip> usual_chip() {
  const char* name = getenv("ASCENDOPT_CHIP");
  return chip_called(name && *name ? name : "ascend910b2");
}

// Why the options can't be; "" when they can.
std::string refusal(const LaunchOptions& o) {
  if (o.size != sizeof o) return "the launch options are of another version of the virtual NPU";
  if (o.state > static_cast<uint8_t>(State::Cold)) return "state is 0, 1 or 2: warm, flushed or cold";
  if (o.threads > kMostThreads) return "threads is a number from 1 to 256, or 0 for the usual";
  return "";
}

thread_local std::string last_error, last_log;
thread_local size_t last_beside = 0;

// Why the kernel is not even started; "" when it is.
std::string refusal(uint32_t block_dim) {
  if (block_dim == 0 || block_dim > 65535) return "block dim " + std::to_string(block_dim) + " is outside 1..65535";
  return "";
}

// Blocks are groups, where a kernel is for both kinds of cores.
Groups launched_groups(const KernelInfo& kernel, uint32_t block_dim) {
  const int blocks = static_cast<int>(block_dim);
  if (kernel.core_type >= 2) return {blocks, 1, kernel.core_type - 1};
  return groups_of(kernel.core_type == 1 ? CoreKind::Cube : CoreKind::Vector, blocks);
}

// What the compiler orders by itself costs time and hides hazards; without either observer nobody has to know.
Options core_options(const KernelInfo& kernel, const LaunchOptions& o) {
  const bool timing = o.timing != 0, hazards = o.hazards != 0;
  return {timing, hazards, kernel.auto_sync && (timing || hazards), o.log != 0, o.fill, o.stack, o.keep != 0};
}

// Cores may only run beside each other where every store is seen; logs and kept writes look into memory meanwhile.
// Those of a group hand each other what they have done: their order matters.
bool may_run_beside(const LaunchOptions& o, const Task& task, bool variables) {
  const bool seen = task.kernel.guarded && task.guarded && guard_answers() && !variables;
  return task.groups.blocks > 1 && !task.groups.mixed() && !o.log && !o.writes && seen;
}

// Those that have begun: with an error not all.
std::vector<Core*> begun_cores(const Fibers& fibers) {
  std::vector<Core*> cores;
  for (const auto& f : fibers)
    if (f->core) cores.push_back(f->core.get());
  return cores;
}

std::string access_log(const std::vector<Core*>& cores, const Groups& groups) {
  std::vector<LoggedCore> logged;
  for (Core* c : cores) logged.push_back({c->log, c->local(), c->map});
  return access_log_json(logged, groups);
}

// Plays the traces: fills the report's times. Returns what waits for ever, "" when nothing does.
std::string model_time(const std::vector<Core*>& cores, const Chip& chip, const LaunchOptions& o, Report& report) {
  std::vector<Trace> traces;
  for (Core* c : cores) traces.push_back(std::move(c->trace));
  auto replay = std::make_shared<const Replay>(std::move(traces), report.groups, chip, static_cast<State>(o.state));
  report.times = replay->times(chip, o.trace ? &report.timeline : nullptr);
  if (!report.times.deadlock.empty()) return "deadlock: " + report.times.deadlock;
  report.profile(replay->traces(), chip);
  keep(std::move(replay));
  return "";
}

}  // namespace

void set_last_error(const std::string& what) { last_error = what; }

LaunchResult launch(const KernelInfo& kernel, uint32_t block_dim, void** args, bool variables, const LaunchOptions& o) {
  const std::lock_guard lock(one_at_a_time);
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
  if (const std::string why = refusal(o); !why.empty()) return finish(kInvalidParam, why);
  std::shared_ptr<const Chip> in_force;
  try {
    in_force = o.chip ? chip_called(o.chip) : usual_chip();
  } catch (const std::exception& e) {
    return finish(kInvalidParam, e.what());
  }
  const Chip& chip = *in_force;
  report.chip = chip.name;
  if (const std::string why = refusal(block_dim); !why.empty()) return finish(kInvalidParam, why);

  const Options options = core_options(kernel, o);
  const Groups groups = report.groups = launched_groups(kernel, block_dim);
  Crossing crossing(groups);
  Fibers fibers;
  for (int i = 0; i < groups.cores(); i++) fibers.push_back(std::make_unique<Fiber>());
  const Reach code = image_of(reinterpret_cast<const void*>(kernel.entry));
  const Task task{kernel, groups, args, chip, options, crossing, o.writes != 0, code, o.guard != 0 && code.bytes != 0};
  divisions_go_on();
  const size_t threads = std::min<size_t>(o.threads ? o.threads : usual_threads(), block_dim);
  last_beside = threads > 1 && may_run_beside(o, task, variables) ? run_beside(fibers, task, threads) : 0;
  KernelError* error = run_in_turn(fibers, task);
  const std::vector<Core*> cores = begun_cores(fibers);

  if (o.log) last_log = access_log(cores, groups);
  const BufferNames names{kernel, args};
  tell_habits(cores, crossing, names, report);
  if (error) {
    report.errors.push_back(*error);
    return finish(kVectorCoreException, error->what());
  }
  tell_findings(cores, names, o.hazards != 0, report);
  if (o.timing) {
    if (const std::string deadlock = model_time(cores, chip, o, report); !deadlock.empty()) {
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

const char* vnpu_chip_value(const char* key) {
  thread_local std::string value;
  try {
    const auto chip = vnpu::usual_chip();
    const auto found = chip->values.find(key);
    value = found == chip->values.end() ? "" : found->second;
  } catch (const std::exception& e) {
    vnpu::last_error = e.what();
    value.clear();
  }
  return value.c_str();
}

}  // extern "C"
