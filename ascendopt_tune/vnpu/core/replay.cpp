#include "replay.h"

#include <exception>
#include <map>
#include <mutex>
#include <sstream>

#include "launch.h"

namespace vnpu {
namespace {

thread_local std::shared_ptr<const Replay> last_replay;

std::vector<const Trace*> pointers(const std::vector<Trace>& traces) {
  std::vector<const Trace*> out;
  for (const Trace& t : traces) out.push_back(&t);
  return out;
}

}  // namespace

Replay::Replay(std::vector<Trace> traces, const Groups& groups, const Chip& chip, State state)
    : traces_(std::move(traces)),
      task_(std::make_unique<TaskTraces>(pointers(traces_), groups, chip)),
      chip_(chip),
      state_(state) {
  if (state_ == State::Warm) simulate(*task_, chip_, l2_, state_, nullptr);
}

TaskTimes Replay::times(const Chip& chip, Timeline* timeline) const {
  L2State l2 = l2_;
  return simulate(*task_, chip, l2, state_, timeline);
}

void keep(std::shared_ptr<const Replay> replay) { last_replay = std::move(replay); }

}  // namespace vnpu

namespace {

std::mutex kept_mutex;
std::map<int, std::shared_ptr<const vnpu::Replay>> kept;  // by their numbers, which are not used again
int kept_number = 0;

int replay(const vnpu::Replay& launch, const char* clocks, double* times_us, uint32_t n) {
  using namespace vnpu;
  try {
    std::istringstream in(clocks ? clocks : "");
    std::string line;
    for (uint32_t i = 0; i < n; i++) {
      if (!std::getline(in, line)) line.clear();
      const Chip chip = launch.chip().with(line);
      const PipeTimes t = mean_times(launch.times(chip, nullptr), launch.groups(), leading(launch.groups()), chip);
      for (double us : {t.task, t.core, t.vec, t.scalar, t.mte2, t.mte3}) *times_us++ = us;
    }
  } catch (const std::exception& e) {
    set_last_error(e.what());
    return 1;
  }
  return 0;
}

}  // namespace

extern "C" {

int vnpu_replay(const char* clocks, double* times_us, uint32_t n) {
  if (vnpu::last_replay) return replay(*vnpu::last_replay, clocks, times_us, n);
  vnpu::set_last_error("there is no timed launch to replay; launch a kernel with timing first");
  return 1;
}

int vnpu_replay_keep() {
  if (!vnpu::last_replay) return 0;
  std::lock_guard lock(kept_mutex);
  kept[++kept_number] = vnpu::last_replay;
  return kept_number;
}

int vnpu_replay_kept(int number, const char* clocks, double* times_us, uint32_t n) {
  std::shared_ptr<const vnpu::Replay> launch;
  {
    std::lock_guard lock(kept_mutex);
    const auto found = kept.find(number);
    if (found != kept.end()) launch = found->second;
  }
  if (launch) return replay(*launch, clocks, times_us, n);
  vnpu::set_last_error("no launch is kept under the number " + std::to_string(number));
  return 1;
}

void vnpu_replay_release(int number) {
  std::lock_guard lock(kept_mutex);
  kept.erase(number);
}
}
