#include "timing.h"

#include <algorithm>
#include <utility>

#include "core_sim.h"
#include "cross_flags.h"
#include "l2.h"
#include "traffic.h"

namespace vnpu {
namespace {

// How many cores make the transfers of each core with the same address as others at the same point of their programs.
// Cores that walk the same addresses in the same order stay together, whenever they started: the first waits for HBM
// and the others catch up with it. Empty for a core that shares nothing.
std::vector<std::vector<uint16_t>> sharers_of(const std::vector<const Trace*>& traces, uint64_t window) {
  std::vector<std::vector<uint16_t>> out(traces.size());
  std::vector<std::pair<uint64_t, size_t>> at;
  for (size_t j = 0;; j++) {
    at.clear();
    bool any = false;
    for (size_t i = 0; i < traces.size(); i++) {
      if (j >= traces[i]->transfers.size()) continue;
      any = true;
      const Transfer& t = traces[i]->transfers[j];
      if (!t.write) at.push_back({t.gm_addr / window, i});
    }
    if (!any) return out;
    std::sort(at.begin(), at.end());
    for (size_t k = 0; k < at.size();) {
      size_t end = k;
      while (end < at.size() && at[end].first == at[k].first) end++;
      for (size_t m = k; end - k > 1 && m < end; m++) {
        std::vector<uint16_t>& shared = out[at[m].second];
        if (shared.empty()) shared.assign(traces[at[m].second]->transfers.size(), 1);
        shared[j] = static_cast<uint16_t>(end - k);
      }
      k = end;
    }
  }
}

// Where blocks come from. They are handed to cores one after another; the first instructions of a kernel, and its
// tiling data, are the same address for every core, so fetching them queues (architecture 2201, constraints: "same
// address"). Cores that wait are served some at a time: the published launches are as long with four cores as with one.
// Blocks beyond the first wave queue there like any other, when a core is free. Tiling data are copied by MTE2, which
// is busy while its request queues.
class Front {
 public:
  Front(const TaskTraces& task, const Chip& chip, State state)
      : at_once_(state == State::Warm ? chip.launch_at_once : 1),
        dispatch_(chip.launch_dispatch_us * chip.clock_mhz),
        fetch_((state == State::Warm ? chip.launch_fetch_us : chip.flushed_fetch_us) * at_once_ * chip.clock_mhz),
        load_(task.tiling
                  ? (state == State::Warm ? chip.launch_tiling_us : chip.flushed_tiling_us) * at_once_ * chip.clock_mhz
                  : 0),
        head_(((state == State::Warm      ? chip.core_head_us
                : state == State::Flushed ? chip.flushed_head_us
                                          : chip.cold_head_us) +
               (task.tiling && state == State::Warm ? chip.operator_head_us : 0)) *
              chip.clock_mhz) {}

  // The next block, on a core that is free at `free`.
  void start(CoreSim& core, double free) {
    handed_ = std::max(free, handed_);
    if (served_ == at_once_ || handed_ > fetched_) {
      fetched_ = std::max(fetched_, handed_) + fetch_ + load_;
      served_ = 0;
    }
    served_++;
    core.start(handed_, fetched_ + head_, load_ > 0 ? (fetched_ - handed_) * load_ / (fetch_ + load_) : 0);
    handed_ += dispatch_;
  }

 private:
  const uint32_t at_once_;
  const double dispatch_, fetch_, load_, head_;
  uint32_t served_ = 0;  // of the cores that are served together
  double handed_ = 0, fetched_ = -1;
};

}  // namespace

TaskTraces::TaskTraces(std::vector<const Trace*> all, CoreKind cores, const Chip& chip)
    : kind(cores), traces(std::move(all)), sharers(sharers_of(traces, static_cast<uint64_t>(chip.gm_request_bytes))) {
  for (const Trace* t : traces) tiling = tiling || t->tiling;
}

namespace {

// One playing of a task's traces: blocks on cores, the memory system between them.
class Simulation {
 public:
  Simulation(const TaskTraces& task, const Chip& chip, L2State& l2, State state, Timeline* timeline)
      : chip_(chip),
        traffic_(task.traces, chip, l2),
        cross_(task.traces.size(), chip.cross_flags),
        front_(task, chip, state),
        started_(std::min<size_t>(task.traces.size(), cores_of(task.kind, chip))),
        ended_(task.traces.size()),
        timeline_(timeline) {
    cores_.reserve(task.traces.size());
    for (size_t i = 0; i < task.traces.size(); i++)
      cores_.emplace_back(static_cast<int>(i), *task.traces[i], task.sharers[i], traffic_.bandwidth(), cross_, chip,
                          timeline);
    if (timeline) *timeline = Timeline(task.traces);
  }

  void run() {
    const size_t first_wave = started_;
    for (size_t i = 0; i < first_wave; i++) front_.start(cores_[i], 0);
    for (size_t i = 0; i < first_wave; i++) advance(i);
    while (true) {
      if (cross_.news()) {
        for (size_t i = 0; i < cores_.size(); i++) advance(i);
      } else if (traffic_.awaited()) {
        const int core = traffic_.step(cores_.data());
        if (core >= 0) advance(static_cast<size_t>(core));
      } else if (!meet()) {
        return;
      }
    }
  }

  TaskTimes times() {
    TaskTimes out;
    out.l2_hit_bytes = traffic_.hit_bytes();
    out.l2_miss_bytes = traffic_.miss_bytes();
    double end = 0;
    for (CoreSim& c : cores_) {
      if (!c.finished() && out.deadlock.empty()) out.deadlock = c.waiting() + " waits for something that never happens";
      out.cores.push_back(c.result());
      end = std::max(end, out.cores.back().end);
    }
    out.cycles = end + chip_.launch_base_us * chip_.clock_mhz;
    return out;
  }

 private:
  // Lets a block go on as far as it can; the core of one that ends takes the next.
  void advance(size_t block) {
    while (true) {
      cores_[block].advance(traffic_.arrivals());
      if (ended_[block] || !cores_[block].finished()) return;
      ended_[block] = true;
      if (started_ == cores_.size()) return;
      const double free = cores_[block].end();
      if (timeline_) timeline_->cores[started_] = timeline_->cores[block];
      block = started_++;
      front_.start(cores_[block], free);
    }
  }

  // All cores at SyncAll: lets them go together. False when some are not there.
  bool meet() {
    double latest = 0;
    for (CoreSim& c : cores_) {
      if (!c.at_sync()) return false;
      latest = std::max(latest, c.sync_time());
    }
    for (CoreSim& c : cores_) c.leave_sync(latest + chip_.sync_all);
    for (size_t i = 0; i < cores_.size(); i++) advance(i);
    return true;
  }

  const Chip& chip_;
  Traffic traffic_;
  CrossFlags cross_;
  Front front_;
  size_t started_;  // blocks that have a core, or had one
  std::vector<bool> ended_;
  Timeline* timeline_;
  std::vector<CoreSim> cores_;
};

}  // namespace

TaskTimes simulate(const TaskTraces& task, const Chip& chip, L2State& l2, State state, Timeline* timeline) {
  Simulation simulation(task, chip, l2, state, timeline);
  simulation.run();
  return simulation.times();
}

PipeTimes mean_times(const TaskTimes& times, CoreKind kind, const Chip& chip) {
  // With more blocks than cores, a core runs several.
  const double n = std::min(static_cast<double>(times.cores.size()), static_cast<double>(cores_of(kind, chip)));
  PipeTimes out;
  for (const CoreTimes& c : times.cores) {
    auto busy = [&](Pipe pipe) { return c.busy[static_cast<int>(pipe)] / n; };
    out.core += (c.end - c.start) / n;
    out.vec += busy(Pipe::V);
    // Until its first instruction is there, the scalar unit is what waits for it.
    out.scalar += busy(Pipe::S) + (c.first - c.start - c.loading) / n;
    out.mte2 += busy(Pipe::MTE2);
    out.mte3 += busy(Pipe::MTE3);
    out.mte1 += busy(Pipe::MTE1);
    out.mac += busy(Pipe::M);
    out.fixpipe += busy(Pipe::FIX);
  }
  out.task = times.cycles;
  if (kind == CoreKind::Vector) out.vec += chip.vec_floor;
  for (double* cycles :
       {&out.task, &out.core, &out.vec, &out.scalar, &out.mte2, &out.mte3, &out.mte1, &out.mac, &out.fixpipe})
    *cycles /= chip.clock_mhz;
  return out;
}

}  // namespace vnpu
