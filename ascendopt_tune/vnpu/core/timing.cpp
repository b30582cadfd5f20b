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
// is busy while its request queues. In a mixed task either kind of core has its own first instructions.
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

TaskTraces::TaskTraces(std::vector<const Trace*> all, const Groups& cores, const Chip& chip)
    : groups(cores),
      traces(std::move(all)),
      sharers(sharers_of(traces, static_cast<uint64_t>(chip.gm_request_bytes))),
      meetings(meetings_of(traces, chip)),
      few_bytes(chip.few_bytes_most) {
  for (const Trace* t : traces) tiling = tiling || t->tiling;
}

namespace {

// What the address of a page takes. Behind another kernel it is looked up anew. Of cube cores, and of tasks that have
// any, published times contradict each other, so they have a number of their own.
double page_cycles(const TaskTraces& task, const Chip& chip, State state) {
  if (state != State::Flushed) return 0;
  return (task.groups.has(CoreKind::Cube) ? chip.flushed_cube_page_us : chip.flushed_page_us) * chip.clock_mhz;
}

// One playing of a task's traces: blocks on cores, the memory system between them.
class Simulation {
 public:
  Simulation(const TaskTraces& task, const Meetings& meetings, const Chip& chip, L2State& l2, State state,
             Timeline* timeline)
      : chip_(chip),
        traffic_(task.traces, meetings, chip, l2, page_cycles(task, chip, state)),
        groups_(task.groups),
        cross_(groups_),
        fronts_{Front(task, chip, state), Front(task, chip, state)},
        ended_(task.traces.size()),
        timeline_(timeline) {
    cores_.reserve(task.traces.size());
    for (size_t i = 0; i < task.traces.size(); i++)
      cores_.emplace_back(static_cast<int>(i), *task.traces[i], task.sharers[i], traffic_.bandwidth(), cross_, chip,
                          timeline);
    if (timeline) *timeline = Timeline(task.traces, groups_);
  }

  void run() {
    const int first_wave = std::min(groups_.blocks, groups_.at_once(chip_));
    for (int group : starting_order(first_wave)) start(group, 0);
    started_ = first_wave;
    advance_all();
    while (true) {
      if (cross_.news()) {
        advance_all();
      } else if (next_may_start()) {
        start_next();
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
      if (!c.finished() && out.deadlock.empty())
        out.deadlock = c.waiting(groups_) + " waits for something that never happens";
      out.cores.push_back(c.result());
      end = std::max(end, out.cores.back().end);
    }
    out.cycles = end + chip_.launch_base_us * chip_.clock_mhz;
    if (groups_.mixed()) out.cycles += chip_.mixed_start_us * chip_.clock_mhz;
    return out;
  }

 private:
  // Vector cores begin by AI Core, the two of one next to each other, and blocks go to the first vector core of every
  // AI Core before the second ones. Inferred from published times: mhc_expand on 40 cores, where the last 8 blocks have
  // no rows, ends as if blocks with rows began last, mhc_sinkhorn with one row as if block 0 began first. Nothing is
  // published for other kinds: their groups begin in order.
  std::vector<int> starting_order(int count) const {
    const int step = groups_.has(CoreKind::Cube) ? count : std::max(1, static_cast<int>(chip_.aic));
    std::vector<int> order;
    for (int i = 0; i < step; i++)
      for (int group = i; group < count; group += step) order.push_back(group);
    return order;
  }

  // Hands the next group to cores that are free at `free`.
  void start(int group, double free) {
    for (int core = group * groups_.size(); core < (group + 1) * groups_.size(); core++)
      fronts_[groups_.kind(core) == CoreKind::Cube].start(cores_[static_cast<size_t>(core)], free);
  }

  // Lets all go on that have begun.
  void advance_all() {
    for (int i = 0; i < started_ * groups_.size(); i++) advance(static_cast<size_t>(i));
  }

  // Lets a core go on as far as it can. Where its part ends it is free for another group.
  void advance(size_t core) {
    cores_[core].advance(traffic_.arrivals());
    if (ended_[core] || !cores_[core].finished()) return;
    ended_[core] = true;
    free_[groups_.kind(static_cast<int>(core)) == CoreKind::Cube].push_back(core);
  }

  // Whether the next group can have the cores it needs, before anything else happens that might free others.
  bool next_may_start() {
    if (started_ == groups_.blocks || free_[0].size() < static_cast<size_t>(groups_.vectors) ||
        free_[1].size() < static_cast<size_t>(groups_.cubes))
      return false;
    double start = 0;
    for (int kind = 0; kind < 2; kind++) {
      const auto needed = kind == 0 ? groups_.vectors : groups_.cubes;
      if (needed == 0) continue;
      std::sort(free_[kind].begin(), free_[kind].end(),
                [this](size_t a, size_t b) { return std::pair(cores_[a].end(), a) < std::pair(cores_[b].end(), b); });
      start = std::max(start, cores_[free_[kind][static_cast<size_t>(needed - 1)]].end());
    }
    return !traffic_.awaited() || start <= traffic_.next();
  }

  // The next group takes the cores of each kind that were free first, which next_may_start has sorted.
  void start_next() {
    const int size = groups_.size(), next = started_++;
    double free = 0;
    for (int i = 0; i < size; i++) {
      const auto to = static_cast<size_t>(next * size + i);
      std::vector<size_t>& those = free_[groups_.kind(static_cast<int>(to)) == CoreKind::Cube];
      free = std::max(free, cores_[those.front()].end());
      if (timeline_) timeline_->cores[to] = timeline_->cores[those.front()];
      those.erase(those.begin());
    }
    start(next, free);
    for (int i = 0; i < size; i++) advance(static_cast<size_t>(next * size + i));
  }

  // Cores at SyncAll: lets those go together that meet each other. False when some are not there.
  bool meet() {
    return meet(Scope::All, groups_.kind(0)) || meet(Scope::Kind, CoreKind::Vector) ||
           meet(Scope::Kind, CoreKind::Cube);
  }
  bool meet(Scope scope, CoreKind kind) {
    const auto belongs = [&](size_t i) { return scope == Scope::All || groups_.kind(static_cast<int>(i)) == kind; };
    double latest = -1;
    for (size_t i = 0; i < cores_.size(); i++) {
      if (!belongs(i)) continue;
      if (!cores_[i].at_sync(scope)) return false;
      latest = std::max(latest, cores_[i].sync_time());
    }
    if (latest < 0) return false;
    const double takes = chip_.sync_all + (scope == Scope::All ? 2 * chip_.group_flag : 0);
    for (size_t i = 0; i < cores_.size(); i++)
      if (belongs(i)) cores_[i].leave_sync(latest + takes);
    advance_all();
    return true;
  }

  const Chip& chip_;
  Traffic traffic_;
  const Groups groups_;
  CrossFlags<double> cross_;
  Front fronts_[2];              // of vector cores, and of cube cores
  int started_ = 0;              // groups that have cores, or had them
  std::vector<size_t> free_[2];  // vector cores and cube cores whose part has ended and that have got no other
  std::vector<bool> ended_;
  Timeline* timeline_;
  std::vector<CoreSim> cores_;
};

}  // namespace

TaskTimes simulate(const TaskTraces& task, const Chip& chip, L2State& l2, State state, Timeline* timeline) {
  if (state == State::Flushed) l2.fill(chip.l2_kept_bytes(), chip.flushed_dirty_share);
  // Meetings of more copies than wait serve as well; those of fewer don't.
  const bool more = chip.few_bytes_most > task.few_bytes;
  const Meetings wider = more ? meetings_of(task.traces, chip) : Meetings();
  Simulation simulation(task, more ? wider : task.meetings, chip, l2, state, timeline);
  simulation.run();
  return simulation.times();
}

CoreKind leading(const Groups& groups) { return groups.has(CoreKind::Cube) ? CoreKind::Cube : CoreKind::Vector; }

PipeTimes mean_times(const TaskTimes& times, const Groups& groups, CoreKind kind, const Chip& chip) {
  // With more blocks than cores, a core runs several.
  const double n = std::min(static_cast<double>(groups.cores(kind)), static_cast<double>(cores_of(kind, chip)));
  PipeTimes out;
  for (size_t i = 0; i < times.cores.size(); i++) {
    if (groups.kind(static_cast<int>(i)) != kind) continue;
    const CoreTimes& c = times.cores[i];
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
