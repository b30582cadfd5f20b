#include "traffic.h"

#include <algorithm>
#include <utility>

#include "memory.h"

namespace vnpu {
namespace {

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

void Traffic::arrive(const Arrival& a, const CoreSim* cores) {
  const Transfer& t = traces_[static_cast<size_t>(a.core)]->transfers[a.transfer];
  if (page_cycles_ > 0 && !a.translated) {
    const double known = translated(a, t);
    if (known > a.time) return arrivals_.push({known, a.core, a.pipe, a.number, a.transfer, true});
  }
  const L2State::Touched touched = l2_.touch(t, chip_);
  hits_ += touched.resident * t.bytes;
  misses_ += (1 - touched.resident) * t.bytes;
  const Move m = move_of(t, touched, chip_);
  UnderWay& under_way = moving(a.core, a.pipe);
  under_way.back = t.write ? m.written_back : 0;
  under_way.resident = touched.resident;
  const auto core = static_cast<size_t>(a.core);
  under_way.delay = core < meetings_.size() && !meetings_[core].empty() && meetings_[core][a.transfer]
                        ? windows_.delay(a.core, t, a.time, cores[core].request_cycles(a.pipe, touched.resident))
                        : 0;
  if (!t.write && m.written_back > 0)
    bandwidth_.arrive(a.time, m.written_back, {Bandwidth::kNobody, a.pipe, a.number, Bandwidth::kWriteBack});
  bandwidth_.arrive(a.time, m.bytes, {a.core, a.pipe, a.number, m.kind});
}

// Pages are counted from the first address that the task copies from or to: what was allocated before must not change a
// time, as it doesn't change distances.
uint64_t Traffic::begin_of(const std::vector<const Trace*>& traces) {
  uint64_t first = ~0ull;
  for (const Trace* trace : traces)
    for (const Transfer& t : trace->transfers) first = std::min(first, t.gm_addr);
  return first / kCanonicalPage * kCanonicalPage;
}

// The first page of a core is looked up beside its first instructions, and is part of what they take; where a copy goes
// on from the one before of its pipe, the next page is known in time (two cores of concat_tasks that copy 9 MB).
double Traffic::translated(const Arrival& a, const Transfer& t) {
  const auto size = static_cast<uint64_t>(chip_.page_bytes);
  std::unordered_map<uint64_t, double>& known = pages_[static_cast<size_t>(a.core)];
  uint64_t& end = moving(a.core, a.pipe).end;
  const uint64_t begin = t.gm_addr - begin_;
  const uint64_t length = (std::max(t.bursts, 1u) - 1) * t.burst_stride + std::max(t.burst_bytes, 1u);
  const bool dense = t.bursts <= 1 || t.burst_stride <= t.burst_bytes;
  double until = a.time;
  bool ahead = known.empty() || begin == end;
  for (uint64_t page = begin / size; page <= (begin + length - 1) / size; page++) {
    const auto [at, fresh] = known.emplace(page, 0);
    if (fresh) at->second = a.time + (ahead ? 0 : page_cycles_);  // pages of one copy are looked up together
    until = std::max(until, at->second);
    ahead = dense;
  }
  end = begin + length;
  return until;
}

double Traffic::next() const {
  return arrivals_.empty() ? bandwidth_.next() : std::min(arrivals_.top().time, bandwidth_.next());
}

int Traffic::step(CoreSim* cores) {
  const double completion = bandwidth_.next();
  if (!arrivals_.empty() && arrivals_.top().time <= completion) {
    const Arrival a = arrivals_.top();
    arrivals_.pop();
    arrive(a, cores);
    return -1;
  }
  const Bandwidth::Done d = bandwidth_.finish();
  if (d.core == Bandwidth::kNobody) return -1;
  UnderWay& move = moving(d.core, d.pipe);
  if (move.back > 0) {  // L2 has the data; lines that made room for them still have to reach HBM
    bandwidth_.arrive(completion, std::exchange(move.back, 0), {d.core, d.pipe, d.number, Bandwidth::kWriteBack});
    return -1;
  }
  cores[d.core].transfer_done(d.pipe, completion, move.resident, move.delay);
  return d.core;
}

}  // namespace vnpu
