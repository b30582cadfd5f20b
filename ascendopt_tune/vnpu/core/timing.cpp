#include "timing.h"

#include <algorithm>

#include "bandwidth.h"
#include "core_sim.h"
#include "cross_flags.h"
#include "l2.h"

namespace vnpu {
namespace {

// How many cores make the transfers of each core with the same address as others at the same point of their programs.
// Cores that walk the same addresses in the same order stay together, whenever they started: the first waits for HBM
// and the others catch up with it. Empty for a core that shares nothing.
std::vector<std::vector<uint16_t>> sharers_of(const std::vector<const Trace*>& traces) {
  constexpr uint64_t kWindow = 512;
  std::vector<std::vector<uint16_t>> out(traces.size());
  std::vector<std::pair<uint64_t, size_t>> at;
  for (size_t j = 0;; j++) {
    at.clear();
    bool any = false;
    for (size_t i = 0; i < traces.size(); i++) {
      if (j >= traces[i]->transfers.size()) continue;
      any = true;
      const Transfer& t = traces[i]->transfers[j];
      if (!t.write) at.push_back({t.gm_addr / kWindow, i});
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

// What a transfer asks of the memory system.
struct Move {
  Bandwidth::Kind kind;
  double bytes;         // of that kind; requests to HBM count more than their bytes
  double written_back;  // bytes that go to HBM: before a write is complete, beside a read
};

Move move_of(const Transfer& t, const L2State::Touched& touched, const Chip& chip) {
  double dirty = touched.dirty_bytes * chip.write_back_cost;
  if (t.write) {
    double past = t.cached ? 0 : t.gm_bytes * chip.write_back_cost;
    return {Bandwidth::kWriteL2, static_cast<double>(t.gm_bytes), dirty + past};
  }
  double from_l2 = t.gm_bytes * touched.resident;
  if (touched.resident >= 1) return {Bandwidth::kReadL2, from_l2, dirty};
  double from_hbm = (t.gm_bytes + t.requests * chip.gm_request_overhead) * (1 - touched.resident);
  return {Bandwidth::kReadHbm, from_hbm + from_l2 * chip.mte2_bytes_per_cycle / chip.mte2_l2_bytes_per_cycle, dirty};
}

}  // namespace

TaskTimes simulate(const std::vector<const Trace*>& traces, const Chip& chip, L2State& l2, Timeline* timeline) {
  TaskTimes out;
  std::vector<std::vector<uint16_t>> sharers = sharers_of(traces);
  Bandwidth bandwidth(chip);
  CrossFlags cross(traces.size());
  std::vector<CoreSim> cores;
  cores.reserve(traces.size());
  for (size_t i = 0; i < traces.size(); i++)
    cores.emplace_back(static_cast<int>(i), *traces[i], sharers[i], bandwidth, cross, chip, timeline);
  if (timeline) *timeline = Timeline(traces);

  std::vector<double> backs(traces.size() * kPipes);  // what the transfer under way on a pipe will write back
  Arrivals arrivals;
  // Blocks are handed out one after another, and the first instructions of one kernel are the same address for every
  // core: fetching them is serialized. As many blocks as there are cores run at once; each further one starts, its
  // instructions cached, where an earlier one has ended.
  double head = chip.core_head_us * chip.clock_mhz, per_core = chip.launch_per_core_us * chip.clock_mhz,
         fetch = chip.core_fetch_us * chip.clock_mhz;
  size_t started = std::min<size_t>(traces.size(), chip.aiv);
  std::vector<bool> ended(traces.size());
  auto advance = [&](size_t i) {
    for (size_t block = i;;) {
      cores[block].advance(arrivals);
      if (ended[block] || !cores[block].finished()) return;
      ended[block] = true;
      if (started == cores.size()) return;
      double free = cores[block].end();
      if (timeline) timeline->cores[started] = timeline->cores[block];
      block = started++;
      free = std::max(free, per_core * static_cast<double>(block));
      cores[block].start(free, free + head);
    }
  };
  auto meet = [&] {  // all cores at SyncAll: let them go together
    double latest = 0;
    for (CoreSim& c : cores) {
      if (!c.at_sync()) return false;
      latest = std::max(latest, c.sync_time());
    }
    for (CoreSim& c : cores) c.leave_sync(latest + chip.sync_all);
    for (size_t i = 0; i < cores.size(); i++) advance(i);
    return true;
  };
  size_t first_wave = started;
  double fetched = 0;
  for (size_t i = 0; i < first_wave; i++) {
    double handed = per_core * static_cast<double>(i);
    fetched = std::max(fetched, handed) + fetch;
    cores[i].start(handed, fetched + head);
  }
  for (size_t i = 0; i < first_wave; i++) advance(i);
  while (true) {
    if (cross.news()) {
      for (size_t i = 0; i < cores.size(); i++) advance(i);
      continue;
    }
    double arrival = arrivals.empty() ? kNever : arrivals.top().time;
    if (arrival == kNever && !bandwidth.awaited()) {
      if (meet()) continue;
      break;
    }
    double completion = bandwidth.next();
    if (arrival <= completion) {
      Arrival a = arrivals.top();
      arrivals.pop();
      const Transfer& t = *a.transfer;
      L2State::Touched touched = l2.touch(t, chip);
      out.l2_hit_bytes += touched.resident * t.bytes;
      out.l2_miss_bytes += (1 - touched.resident) * t.bytes;
      Move m = move_of(t, touched, chip);
      if (t.write)
        backs[a.core * kPipes + static_cast<int>(a.pipe)] = m.written_back;
      else if (m.written_back > 0)
        bandwidth.arrive(a.time, m.written_back, {Bandwidth::kNobody, a.pipe, a.number, Bandwidth::kWriteBack});
      bandwidth.arrive(a.time, m.bytes, {a.core, a.pipe, a.number, m.kind});
      continue;
    }
    Bandwidth::Done d = bandwidth.finish();
    if (d.core == Bandwidth::kNobody) continue;
    CoreSim& core = cores[static_cast<size_t>(d.core)];
    if (d.kind == Bandwidth::kWriteBack) {
      core.written_back(d.pipe, d.number, completion);
    } else {
      double back = backs[d.core * kPipes + static_cast<int>(d.pipe)];
      core.transfer_done(d.pipe, completion, back > 0);
      if (back > 0) bandwidth.arrive(completion, back, {d.core, d.pipe, d.number, Bandwidth::kWriteBack});
    }
    advance(static_cast<size_t>(d.core));
  }
  double end = 0;
  for (CoreSim& c : cores) {
    if (!c.finished() && out.deadlock.empty()) out.deadlock = c.waiting() + " waits for something that never happens";
    out.cores.push_back(c.result());
    end = std::max(end, out.cores.back().end);
  }
  out.cycles = end + chip.launch_base_us * chip.clock_mhz;
  return out;
}

}  // namespace vnpu
