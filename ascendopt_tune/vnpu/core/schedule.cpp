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
KernelError* stuck(Fibers& fibers, size_t at_sync) {
  Fiber& f = **std::find_if(fibers.begin(), fibers.end(), [](const auto& g) { return g->waiting; });
  std::string all = std::to_string(fibers.size()), what = kWords.meet;
  size_t there = at_sync;
  if (f.flag >= 0) {
    what = std::string(kWords.cross_set) + "(" + std::to_string(f.flag) + ")";
    there = static_cast<size_t>(
        std::count_if(fibers.begin(), fibers.end(), [&](const auto& g) { return g->crossed(f.flag) >= f.times; }));
  }
  f.error = std::make_unique<KernelError>(KernelError::kDeadlock,
                                          what + " was reached by " + std::to_string(there) + " of " + all +
                                              " cores, the others have returned or wait for something else: the " +
                                              "waiting cores would wait for ever",
                                          f.flag >= 0 ? kWords.cross_wait : kWords.meet, nullptr);
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

bool may_go(const Fiber& f, const Fibers& all) {
  if (!f.waiting) return true;
  return f.flag >= 0 &&
         std::all_of(all.begin(), all.end(), [&](const auto& other) { return other->crossed(f.flag) >= f.times; });
}

void give_turn(Fiber& f, size_t i, const Task& task) {
  f.waiting = false;
  if (!f.core) f.sit_down(static_cast<int>(i), task);
  f.resume(task);
  if (f.done && !task.options.log) f.stand_up();
}

}  // namespace

KernelError* run_in_turn(Fibers& fibers, const Task& task) {
  while (true) {
    size_t done = 0, at_sync = 0;
    bool progress = false;
    for (size_t i = 0; i < fibers.size(); i++) {
      Fiber& f = *fibers[i];
      if (!f.done && may_go(f, fibers)) {
        give_turn(f, i, task);
        progress = true;
      }
      if (f.error) return f.error.get();
      done += f.done;
      at_sync += f.waiting && f.flag < 0;
    }
    if (done == fibers.size()) return nullptr;
    if (at_sync == fibers.size())
      for (auto& f : fibers) f->waiting = false;
    else if (!progress)
      return stuck(fibers, at_sync);
  }
}

}  // namespace vnpu
