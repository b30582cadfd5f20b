#include "hazard.h"

#include <algorithm>

#include "memory.h"
#include "words.h"

namespace vnpu {
namespace {

constexpr size_t kMaxPending = 4096;  // unordered GM accesses remembered per core

// The pipes whose own instructions may overtake each other's memory effects, so that a dependent one needs PipeBarrier
// (AscendC reference, PipeBarrier: vector results, overlapping MTE2/MTE3 destinations). Scalar accesses are ordered.
bool needs_self_barrier(Pipe p) { return p != Pipe::S; }

std::string edge(Pipe p, Pipe q) { return std::string(pipe_name(p)) + "_" + pipe_name(q); }

// Does the documentation say that automatic synchronization makes this order? See HazardTracker::relies_on.
bool is_documented(Pipe before, Pipe after) {
  return before == Pipe::S || after == Pipe::S || (before == Pipe::V && after == Pipe::V);
}

bool is_dense(const Range& r) { return r.pieces <= 1 || r.stride <= r.bytes; }

// f(begin, end, write) of every piece of the accesses to local memory, as offsets from `base`.
template <typename F>
void for_local_pieces(const Access* accesses, size_t n, uint64_t base, F f) {
  for (size_t i = 0; i < n; i++) {
    const Range& r = accesses[i].range;
    if (accesses[i].gm || r.bytes == 0 || r.pieces == 0) continue;
    const uint64_t offset = r.addr - base, bytes = is_dense(r) ? r.span() : r.bytes;
    for (uint32_t k = 0; k < (is_dense(r) ? 1 : r.pieces); k++)
      f(offset + k * r.stride, offset + k * r.stride + bytes, accesses[i].write);
  }
}

}  // namespace

HazardTracker::HazardTracker(int core, CoreKind kind, const Chip& chip, const LocalMap& map, uint8_t* local_base,
                             uint32_t register_bytes, What what, const std::map<uint32_t, uint32_t>* buffers,
                             Shadows& shadows)
    : core_(core),
      map_(map),
      gm_pipes_(pipe_bit(Pipe::MTE2) | pipe_bit(Pipe::MTE3) | (kind == CoreKind::Cube ? pipe_bit(Pipe::FIX) : 0)),
      base_(local_base),
      bytes_(map.bytes()),
      event_ids_(static_cast<int>(chip.event_ids)),
      report_(what.report),
      auto_sync_(what.auto_sync),
      groups_(what.groups),
      buffers_(buffers),
      shadows_(shadows) {
  const uint32_t blocks = (bytes_ + register_bytes + kBlockBytes - 1) / kBlockBytes;
  for (int p = 0; p < kPipes; p++) {  // those of a core of another kind, that had the memory before, are dropped
    const uint32_t all = (report_ || auto_sync_) && (pipes_of(kind) >> p & 1) ? blocks : 0;
    shadows_.write[static_cast<size_t>(p)].reset(all);
    shadows_.read[static_cast<size_t>(p)].reset(all);
  }
  sites_.resize(kPipes);
  flags_.resize(static_cast<size_t>(kPipes * kPipes * event_ids_));
}

void HazardTracker::on(const Event& e) {
  switch (e.kind) {
    case Event::kInstruction:
      begin(e.pipe, e.api, e.pc);
      return access(e.accesses, e.n);
    case Event::kSetFlag:
      return set_flag(e);
    case Event::kWaitFlag:
      return wait_flag(e);
    case Event::kBarrier:
      return barrier(e.pipe);
    case Event::kBarrierAll:
      return barrier_all();
    case Event::kMeet:
      return sync_all();
    case Event::kCrossSet:
      return cross_set(e.pipe);
    case Event::kCrossWait:
      return;  // what it learns comes when it has waited
  }
}

void HazardTracker::begin(Pipe pipe, const char* api, const void* pc) {
  int p = static_cast<int>(pipe);
  current_ = {pipe, api, pc, false};
  current_epoch_ = ++issued_[p];
  dependencies_.clear();
  // The scalar unit issues in program order: what it has waited for is done before anything it issues.
  if (pipe != Pipe::S)
    for (int q = 0; q < kPipes; q++) known_[p][q] = std::max(known_[p][q], known_[0][q]);
  if (report_) sites_[p].push_back(current_);
}

bool HazardTracker::ordered(Pipe other, uint32_t epoch, bool raw_or_waw) const {
  int p = static_cast<int>(current_.pipe), q = static_cast<int>(other);
  // A scalar read has its value before the next instruction is issued; a scalar write needs a flag (HardEvent::S_V,
  // ...).
  if (other == Pipe::S && !raw_or_waw) return true;
  if (p != q) return known_[p][q] >= epoch;
  if (!needs_self_barrier(other)) return true;
  // In-order issue makes a later write safe against an earlier read of the same pipe.
  return !raw_or_waw || self_barrier_[q] >= epoch || known_[p][q] >= epoch;
}

void HazardTracker::conflict(Pipe other, uint32_t epoch, bool other_write, bool write, bool gm, uint64_t begin,
                             uint64_t end) {
  // The compiler follows local memory, and what the scalar unit loads; not what two copies do to global memory.
  if (auto_sync_ && (!gm || current_.pipe == Pipe::S || other == Pipe::S)) {
    if (depend(other, epoch) && report_)
      leaned_on.push_back(report_of(other, epoch, other_write, write, gm, begin, end));
    return;
  }
  if (!report_ || reports.size() >= kMaxReports) return;
  HazardReport r = report_of(other, epoch, other_write, write, gm, begin, end);
  if (!reported(r)) reports.push_back(std::move(r));
}

HazardReport HazardTracker::report_of(Pipe other, uint32_t epoch, bool other_write, bool write, bool gm, uint64_t begin,
                                      uint64_t end) const {
  HazardReport r;
  r.first = sites_[static_cast<int>(other)][epoch - 1];
  r.first.write = other_write;
  r.second = current_;
  r.second.write = write;
  r.first_core = r.second_core = core_;
  r.gm = gm;
  r.begin = begin;
  r.end = end;
  if (!gm) {
    r.buffer = buffer_at(begin);
    const Memory memory = map_.at(begin);
    if (memory != Memory::kCount) {
      r.memory = memory;
      r.begin -= map_[memory].offset;
      r.end -= map_[memory].offset;
    }
  }
  r.missing = missing_edge(other, current_.pipe);
  return r;
}

// Whether it is the first of an order that the compiler isn't documented to make.
bool HazardTracker::depend(Pipe other, uint32_t epoch) {
  int p = static_cast<int>(current_.pipe), q = static_cast<int>(other);
  const bool first = !(implicit_[q] >> p & 1) && !is_documented(other, current_.pipe);
  implicit_[q] |= static_cast<uint8_t>(1u << p);
  for (const Dependency& d : dependencies_)
    if (d.src == other && d.epoch >= epoch) return first;
  dependencies_.push_back({other, epoch});
  if (p == q)
    self_barrier_[q] = std::max(self_barrier_[q], epoch);
  else
    known_[p][q] = std::max(known_[p][q], epoch);
  return first;
}

bool HazardTracker::reported(const HazardReport& r) const {
  return std::any_of(reports.begin(), reports.end(), [&](const HazardReport& seen) {
    return seen.first.pc == r.first.pc && seen.second.pc == r.second.pc && seen.first.write == r.first.write &&
           seen.second.write == r.second.write;
  });
}

std::string HazardTracker::buffer_at(uint64_t offset) const {
  if (offset >= bytes_) return "result register";
  const Memory memory = map_.at(offset);
  int number = 0;
  for (const auto& [at, bytes] : *buffers_) {
    const uint32_t begin = at - map_[memory].offset;
    if (offset >= at && offset < uint64_t(at) + bytes)
      return memory_name(memory) + (" buffer " + std::to_string(number)) + ", bytes [" + std::to_string(begin) + ", " +
             std::to_string(begin + bytes) + ")";
    number += map_.at(at) == memory;
  }
  return "";
}

void HazardTracker::check_shadow(Pipe other, const Shadow& shadow, bool other_write, uint64_t begin, uint64_t end,
                                 bool write) {
  uint32_t bound = shadow.bound(begin, end);
  bool raw_or_waw = other_write;
  if (bound == 0 || ordered(other, bound, raw_or_waw)) return;
  uint64_t at = begin, to = begin;
  uint32_t epoch = shadow.newest(begin, end, at, to);
  if (epoch && !ordered(other, epoch, raw_or_waw)) conflict(other, epoch, other_write, write, false, at, to);
}

void HazardTracker::check_local(uint64_t begin, uint64_t end, bool write) {
  for (int q = 0; q < kPipes; q++) {
    if (shadows_.write[q].empty() || issued_[q] == 0) continue;
    Pipe other = static_cast<Pipe>(q);
    if (begin >= bytes_ && other == current_.pipe) continue;
    check_shadow(other, shadows_.write[q], true, begin, end, write);
    if (write) check_shadow(other, shadows_.read[q], false, begin, end, write);
  }
}

void HazardTracker::access(const Access* accesses, size_t n) {
  if (!report_ && !auto_sync_) return;
  const auto base = reinterpret_cast<uint64_t>(base_);
  // First all checks: an instruction is not a hazard to itself.
  for_local_pieces(accesses, n, base,
                   [&](uint64_t begin, uint64_t end, bool write) { check_local(begin, end, write); });
  int p = static_cast<int>(current_.pipe);
  for_local_pieces(accesses, n, base, [&](uint64_t begin, uint64_t end, bool write) {
    (write ? shadows_.write[p] : shadows_.read[p]).mark(begin, end, current_epoch_);
  });
  for (size_t i = 0; i < n; i++)
    if (accesses[i].gm && accesses[i].range.bytes && accesses[i].range.pieces) gm(accesses[i]);
}

// Do two accesses touch a byte in common? Exact when one of them is dense or both have the same stride (columns of one
// matrix); otherwise everything between the first and the last byte counts.
bool HazardTracker::overlap(const GmPending& a, const GmPending& b) {
  if (a.end <= b.begin || b.end <= a.begin) return false;
  const GmPending& strided = a.stride > a.bytes ? a : b;
  const GmPending& other = &strided == &a ? b : a;
  bool dense = other.stride <= other.bytes;
  if (strided.stride <= strided.bytes || (!dense && other.stride != strided.stride)) return true;
  uint64_t length = dense ? other.end - other.begin : other.bytes, stride = strided.stride;
  uint64_t offset = other.begin >= strided.begin ? (other.begin - strided.begin) % stride
                                                 : (stride - (strided.begin - other.begin) % stride) % stride;
  return offset < strided.bytes || offset + length > stride;
}

void HazardTracker::gm(const Access& access) {
  if (gm_is_room(access.canonical)) return;
  const Range& range = access.range;
  current_.write = access.write;
  scalar_gm_ = scalar_gm_ || current_.pipe == Pipe::S;
  const uint64_t begin = access.canonical, end = begin + range.span();
  const GmPending now{begin,          end,      range.bytes,  is_dense(range) ? 0 : range.stride,
                      current_epoch_, current_, access.atomic};
  // The scalar unit does one thing after another, and has what it loads before anything else begins.
  const bool scalar = current_.pipe == Pipe::S;
  check_pending(gm_writes_, now, true);
  if (!scalar) check_pending(scalar_writes_, now, true);
  if (access.write) check_pending(gm_reads_, now, false);
  if (!scalar || access.write) {
    auto& mine = scalar ? scalar_writes_ : access.write ? gm_writes_ : gm_reads_;
    if (mine.size() >= kMaxPending) mine.erase(mine.begin(), mine.begin() + kMaxPending / 2);
    mine.push_back(now);
  }
  if (!report_) return;
  if (access.cached) return through_cache(access);
  past_cache(access);
  note_pieces(access, interval_);
}

void HazardTracker::check_pending(std::vector<GmPending>& pending, const GmPending& now, bool other_write) {
  size_t keep = 0;
  for (GmPending& a : pending) {
    bool itself = a.site.pipe == current_.pipe && a.epoch == current_epoch_;
    if (!itself && !(a.atomic && now.atomic) && overlap(a, now) && !ordered(a.site.pipe, a.epoch, other_write))
      conflict(a.site.pipe, a.epoch, other_write, current_.write, true, std::max(a.begin, now.begin),
               std::min(a.end, now.end));
    if (!settled(a)) pending[keep++] = a;
  }
  pending.resize(keep);
}

// Is it ordered before everything that can still touch GM?
bool HazardTracker::settled(const GmPending& a) const {
  for (int p = 1; p < kPipes; p++)
    if ((gm_pipes_ >> p & 1) && !ordered_for(static_cast<Pipe>(p), a.site.pipe, a.epoch)) return false;
  return !scalar_gm_ || ordered_for(Pipe::S, a.site.pipe, a.epoch);
}

// For the comparison between cores only what is touched matters, piece by piece.
void HazardTracker::note_pieces(const Access& access, int interval) {
  const Range& range = access.range;
  const bool dense = is_dense(range);
  const bool keep = keep_writes_ && access.write && !access.atomic && current_.pipe != Pipe::S;
  for (uint32_t i = 0; i < (dense ? 1 : range.pieces); i++) {
    const uint64_t begin = access.canonical + i * range.stride;
    const uint64_t end = dense ? access.canonical + range.span() : begin + range.bytes;
    GmAccess now{
        begin, end, current_, interval, access.atomic, current_epoch_, kOpen, static_cast<int>(views.size()) - 1, {}};
    const auto* stored = reinterpret_cast<const uint8_t*>(range.addr + i * range.stride);
    if (keep) now.bytes.assign(stored, stored + (end - begin));
    if (!continues(now)) gm_accesses.push_back(std::move(now));
  }
}

// Appends `now` to one of the last accesses, of the same site, that ends where it begins; false when there is none.
bool HazardTracker::continues(const GmAccess& now) {
  for (size_t k = gm_accesses.size(); k-- > 0 && gm_accesses.size() - k <= 8;) {
    GmAccess& a = gm_accesses[k];
    const bool alike = a.site.pc == now.site.pc && a.interval == now.interval && a.site.write == now.site.write &&
                       a.atomic == now.atomic && a.view == now.view && a.whole_lines == now.whole_lines;
    if (!alike || a.end != now.begin || a.until != kOpen) continue;
    a.end = now.end;
    a.epoch = now.epoch;
    a.bytes.insert(a.bytes.end(), now.bytes.begin(), now.bytes.end());
    return true;
  }
  return false;
}

void HazardTracker::set_flag(const Event& e) {
  Flag& f = flags_[flag_index(e.src, e.pipe, e.id)];
  int s = static_cast<int>(e.src);
  for (int q = 0; q < kPipes; q++) known_[s][q] = std::max(known_[s][q], known_[0][q]);
  f.twice = f.twice || !f.sets.empty();
  f.sets.push_back({known_[s], e.pc, e.settled});
  f.sets.back().clock[s] = issued_[s];  // a flag is raised when the pipe's earlier instructions are complete
}

void HazardTracker::wait_flag(const Event& e) {
  Flag& f = flags_[flag_index(e.src, e.pipe, e.id)];
  int d = static_cast<int>(e.pipe);
  // What is waited for is what was raised first, whoever raised it; in pairs are a queue's with a queue's, a kernel's
  // with a kernel's.
  const auto own =
      std::find_if(f.sets.begin(), f.sets.end(), [&](const auto& set) { return set.settled == e.settled; });
  if (own != f.sets.end()) {
    std::swap(own->pc, f.sets.front().pc);
    std::swap(own->settled, f.sets.front().settled);
  }
  for (int q = 0; q < kPipes; q++) known_[d][q] = std::max(known_[d][q], f.sets.front().clock[q]);
  f.sets.erase(f.sets.begin());
}

std::vector<HazardTracker::OpenFlag> HazardTracker::open_flags(bool twice) const {
  std::vector<OpenFlag> open;
  for (int s = 0; s < kPipes; s++)
    for (int d = 0; d < kPipes; d++)
      for (int id = 0; id < event_ids_; id++) {
        const auto& sets = flags_[flag_index(static_cast<Pipe>(s), static_cast<Pipe>(d), id)].sets;
        for (const auto& set : sets)
          if (!set.settled && (!twice || sets.size() > 1))
            open.push_back({static_cast<Pipe>(s), static_cast<Pipe>(d), id, set.pc});
      }
  return open;
}

std::vector<std::string> HazardTracker::relies_on() const {
  std::vector<std::string> out;
  for (int q = 0; q < kPipes; q++)
    for (int p = 0; p < kPipes; p++) {
      const Pipe before = static_cast<Pipe>(q), after = static_cast<Pipe>(p);
      if ((implicit_[q] >> p & 1) && !is_documented(before, after)) out.push_back(edge(before, after) + " order");
    }
  for (size_t i = 0; i < flags_.size(); i++) {
    if (!flags_[i].twice) continue;
    const size_t pair = i / static_cast<size_t>(event_ids_);
    std::string text = edge(static_cast<Pipe>(pair / kPipes), static_cast<Pipe>(pair % kPipes)) + " set twice";
    if (out.empty() || out.back() != text) out.push_back(std::move(text));
  }
  return out;
}

Clock HazardTracker::knew() const {
  const auto p = static_cast<size_t>(current_.pipe);
  Clock clock = known_[p];
  clock[p] = current_epoch_;
  return clock;
}

void HazardTracker::barrier(Pipe pipe) {
  int p = static_cast<int>(pipe);
  self_barrier_[p] = issued_[p];
}

void HazardTracker::barrier_all() {
  for (int p = 0; p < kPipes; p++) {
    self_barrier_[p] = issued_[p];
    for (int q = 0; q < kPipes; q++) known_[p][q] = issued_[q];
  }
}

void HazardTracker::release(const Clock& clock) {
  barriers_++;
  size_t open = gm_accesses.size();
  for (size_t i = gm_accesses.size(); i-- > first_open_;) {
    GmAccess& a = gm_accesses[i];
    if (a.until == kOpen && clock[static_cast<int>(a.site.pipe)] >= a.epoch) a.until = barriers_;
    if (a.until == kOpen) open = i;
  }
  first_open_ = open;
  told_ = knows_;
  told_.add({core_, barriers_, clock});
}

void HazardTracker::sync_all() {
  barrier_all();
  release(issued_);
}

void HazardTracker::cross_set(Pipe pipe) {
  int p = static_cast<int>(pipe);
  Clock clock = known_[p];
  for (int q = 0; q < kPipes; q++) clock[q] = std::max(clock[q], known_[0][q]);
  clock[p] = issued_[p];
  clock[0] = issued_[0];
  release(clock);
}

void HazardTracker::message() {
  const int p = static_cast<int>(Pipe::MTE3);
  known_[0][p] = std::max(known_[0][p], posted_);
  posted_ = issued_[p];
  barrier(Pipe::MTE3);
}

void HazardTracker::learn(const Knowledge& known) {
  if (const Knowledge::Known* own = known.of(core_)) {
    for (Clock& of_pipe : known_) join(of_pipe, own->clock);
    interval_ = std::max(interval_, own->barrier);
  }
  if (!report_) return;
  knows_.add(known);
  views.push_back(knows_);
}

}  // namespace vnpu
