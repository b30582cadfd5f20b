#include "replay.h"

#include <exception>
#include <sstream>

#include "launch.h"

namespace vnpu {
namespace {

thread_local std::shared_ptr<const Replay> last;

std::vector<const Trace*> pointers(const std::vector<Trace>& traces) {
  std::vector<const Trace*> out;
  for (const Trace& t : traces) out.push_back(&t);
  return out;
}

}  // namespace

Replay::Replay(std::vector<Trace> traces, const Chip& chip, bool cold)
    : traces_(std::move(traces)), task_(std::make_unique<TaskTraces>(pointers(traces_))), chip_(chip), cold_(cold) {
  if (!cold_) simulate(*task_, chip_, l2_, false, nullptr);
}

TaskTimes Replay::times(const Chip& chip, Timeline* timeline) const {
  L2State l2 = l2_;
  return simulate(*task_, chip, l2, cold_, timeline);
}

void keep(std::shared_ptr<const Replay> replay) { last = std::move(replay); }

}  // namespace vnpu

extern "C" int vnpu_replay(const char* clocks, double* times_us, uint32_t n) {
  using namespace vnpu;
  if (!last) {
    set_last_error("there is no timed launch to replay; launch a kernel with timing=1 first");
    return 1;
  }
  try {
    std::istringstream in(clocks ? clocks : "");
    std::string line;
    for (uint32_t i = 0; i < n; i++) {
      if (!std::getline(in, line)) line.clear();
      const Chip chip = last->chip().with(line);
      const PipeTimes t = mean_times(last->times(chip, nullptr), chip);
      for (double us : {t.task, t.core, t.vec, t.scalar, t.mte2, t.mte3}) *times_us++ = us;
    }
  } catch (const std::exception& e) {
    set_last_error(e.what());
    return 1;
  }
  return 0;
}
