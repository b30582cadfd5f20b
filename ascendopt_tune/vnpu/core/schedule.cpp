#include "schedule.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <system_error>
#include <thread>

namespace vnpu {
namespace {

// Calls `work` on so many threads, this one among them; on fewer where the system has no more.
template <typename F>
void on_threads(size_t threads, F work) {
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < threads) others.emplace_back(work);
  } catch (const std::system_error&) {
  }
  work();
  for (std::thread& t : others) t.join();
}

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

}  // namespace

size_t run_beside(Fibers& fibers, const Task& task, size_t threads) {
  size_t done = 0;
  while (done < fibers.size()) {
    Attempt attempt;
    std::atomic<size_t> next{done};
    on_threads(std::min(threads, fibers.size() - done), [&] {
      while (!attempt.full()) {
        const size_t i = next++;
        if (i >= fibers.size()) return;
        run_detached(*fibers[i], i, task, attempt);
      }
    });
    const size_t end = std::min(next.load(), fibers.size());
    if (attempt.failed()) {
      for (size_t i = done; i < end; i++) fibers[i] = std::make_unique<Fiber>();
      return done;
    }
    for (; done < end; done++) {
      Fiber& f = *fibers[done];
      f.detached->apply();
      f.core->detached = nullptr;
      f.detached.reset();
    }
  }
  return done;
}

KernelError* run_in_turn(Fibers& fibers, const Task& task) {
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
        if (!f->core) f->sit_down(static_cast<int>(i), task);
        f->resume(task);
        if (f->done && !task.options.log) f->stand_up();
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

}  // namespace vnpu
