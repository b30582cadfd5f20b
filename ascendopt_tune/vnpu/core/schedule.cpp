#include "schedule.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "words.h"

namespace vnpu {
namespace {

// Where threads wait for each other. The last one does what is to be done before all go on.
class Meeting {
 public:
  explicit Meeting(size_t threads) : threads_(threads) {}
  template <typename F>
  void wait(F last) {
    std::unique_lock lock(mutex_);
    const size_t round = round_;
    if (++waiting_ < threads_) {
      all_.wait(lock, [&] { return round_ != round; });
      return;
    }
    last();
    waiting_ = 0;
    round_++;
    all_.notify_all();
  }
  // So many threads will never come; called by one that will.
  void leave(size_t threads) {
    const std::lock_guard lock(mutex_);
    threads_ -= threads;
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  size_t threads_, waiting_ = 0, round_ = 0;
};

// Runs core `i` to its end, or until the attempt fails.
void run_detached(Fiber& f, size_t i, const Task& task, Attempt& attempt) {
  try {
    f.detached = std::make_unique<Detached>(attempt);
    f.sit_down(static_cast<int>(i), task);
    f.resume(task);
    f.stand_up();
    f.error ? attempt.fail() : f.detached->end();
  } catch (const std::bad_alloc&) {
    attempt.fail();
  }
}

// Nobody can go on: an error of the first core that waits.
KernelError* stuck(Fibers& fibers, const Task& task) {
  // A cube core that serves waits as long as its vector cores do.
  const auto waits_itself = [](const auto& g) { return g->waiting && g->flag != kBell; };
  auto first = std::find_if(fibers.begin(), fibers.end(), waits_itself);
  if (first == fibers.end())
    first = std::find_if(fibers.begin(), fibers.end(), [](const auto& g) { return g->waiting; });
  Fiber& f = **first;
  const int core = static_cast<int>(first - fibers.begin());
  const int flags = static_cast<int>(task.chip.cross_flags), meetings = 2;
  const bool meets = f.flag >= flags, asks = f.flag >= flags + meetings;
  const char* const waits = asks ? kWords.answer : meets ? kWords.meet : kWords.cross_wait;
  const std::string number = meets ? "" : "(" + std::to_string(f.flag) + ")";
  const auto [there, all] = task.crossing.gathered(core, f.flag);
  std::string text = waits + number + " on " + task.groups.name(core) +
                     ": no core that could raise the flag does it any more: it would wait for ever";
  if (all > 0)
    text = (meets ? kWords.meet : kWords.cross_set) + number +
           (task.groups.mixed() ? ", for which " + task.groups.name(core) + " waits," : "") + " was reached by " +
           std::to_string(there) + " of " + std::to_string(all) +
           " cores, the others have returned or wait for something else: the waiting cores would wait for ever";
  if (f.flag == kLook) text = f.core->looks_for + ", and no core changes it any more: it would wait for ever";
  f.error = std::make_unique<KernelError>(KernelError::kDeadlock, text, waits, nullptr);
  return f.error.get();
}

}  // namespace

size_t run_beside(Fibers& fibers, const Task& task, size_t threads) {
  const size_t all = fibers.size();
  size_t done = 0, end = 0;
  bool over = false;
  std::atomic<size_t> next{0};
  std::optional<Attempt> attempt(std::in_place);
  Meeting meeting(threads);
  const auto work = [&] {
    while (true) {
      while (!attempt->full()) {
        const size_t i = next++;
        if (i >= all) break;
        run_detached(*fibers[i], i, task, *attempt);
      }
      meeting.wait([&] {
        end = std::min(next.load(), all);
        next = done;
        over = attempt->failed();
      });
      if (over) return;
      for (size_t i = next++; i < end; i = next++) {  // they wrote to different bytes
        Fiber& f = *fibers[i];
        f.detached->apply();
        f.core->detached = nullptr;
        f.detached.reset();
      }
      meeting.wait([&] {
        next = done = end;
        over = done == all;
        attempt.emplace();
      });
      if (over) return;
    }
  };
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < threads) others.emplace_back(work);
  } catch (const std::system_error&) {  // the system has no more
    meeting.leave(threads - 1 - others.size());
  }
  work();
  for (std::thread& t : others) t.join();
  for (size_t i = done; i < end; i++) fibers[i] = std::make_unique<Fiber>();
  return done;
}

namespace {

bool may_go(const Fiber& f, int core, const Task& task) {
  return !f.done && (!f.waiting || task.crossing.pending(core, f.flag) > 0);
}

void give_turn(Fiber& f, int core, const Task& task) {
  f.waiting = false;
  if (!f.core) f.sit_down(core, task);
  f.resume(task);
  if (f.done && !task.options.log) f.stand_up();
}

// Gives turns to the cores of one group, until none can go on without cores of other groups. Returns whether any did.
bool run_group(Fibers& fibers, int group, const Task& task) {
  const int size = task.groups.size(), first = group * size;
  bool progress = false;
  for (bool again = true; again;) {
    again = false;
    for (int core = first; core < first + size; core++) {
      Fiber& f = *fibers[static_cast<size_t>(core)];
      if (!may_go(f, core, task)) continue;
      give_turn(f, core, task);
      if (f.error) return true;
      progress = true;
      again = size > 1;
    }
  }
  return progress;
}

}  // namespace

KernelError* run_in_turn(Fibers& fibers, const Task& task) {
  const auto size = static_cast<size_t>(task.groups.size());
  while (true) {
    size_t done = 0;
    bool progress = false;
    for (size_t group = 0; group * size < fibers.size(); group++) {
      progress = run_group(fibers, static_cast<int>(group), task) || progress;
      for (size_t i = group * size; i < (group + 1) * size; i++) {
        if (fibers[i]->error) return fibers[i]->error.get();
        done += fibers[i]->done;
      }
    }
    if (done == fibers.size()) return nullptr;
    if (!progress) return stuck(fibers, task);
  }
}

}  // namespace vnpu
