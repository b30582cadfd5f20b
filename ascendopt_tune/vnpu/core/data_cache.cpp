#include "data_cache.h"

#include <algorithm>

#include "hazard.h"
#include "words.h"

namespace vnpu {

CachedLine& DataCache::load(uint64_t number, int barrier) {
  const auto [at, added] = lines_.try_emplace(number);
  if (added) {
    at->second.loaded = barrier;
    first_ = std::min(first_, number);
    last_ = std::max(last_, number);
  }
  return at->second;
}

uint64_t DataCache::bits(uint64_t number, uint64_t begin, uint64_t end) {
  const uint64_t line = number * kLine;
  const uint64_t from = begin > line ? begin - line : 0, to = std::min(end - line, kLine);
  const uint64_t up_to = to == kLine ? ~0ull : (1ull << to) - 1;
  return up_to & ~((1ull << from) - 1);
}

void DataCache::forget(uint64_t number, const std::function<void(uint64_t, const CachedLine&)>& f) {
  const auto at = lines_.find(number);
  if (at == lines_.end()) return;
  f(number, at->second);
  lines_.erase(at);
}

void DataCache::forget_all(const std::function<void(uint64_t, const CachedLine&)>& f) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, line] : lines_) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) f(number, lines_[number]);
  lines_.clear();
  first_ = ~0ull;
  last_ = 0;
}

// ---- what the hazard checker makes of it ----

void HazardTracker::incoherent(Pipe other, uint32_t epoch, bool other_write, bool write, uint64_t begin, uint64_t end) {
  if (reports.size() >= kMaxReports) return;
  HazardReport r = report_of(other, epoch, other_write, write, true, begin, end);
  r.missing = kWords.write_back;
  if (!reported(r)) reports.push_back(std::move(r));
}

// The scalar unit's access goes through the cache. What it stores reaches global memory, for other cores to see, when
// its line is written back; what it loads may be as old as the line.
void HazardTracker::through_cache(const Access& access) {
  const uint64_t begin = access.canonical, end = begin + access.range.span();
  int oldest = interval_;
  for (uint64_t number = begin / DataCache::kLine; number * DataCache::kLine < end; number++) {
    CachedLine& line = cache_.load(number, interval_);
    const uint64_t touched = DataCache::bits(number, begin, end);
    // A store makes the whole line go out; a load takes its own bytes.
    const uint64_t stale = line.stale & ~line.stored & (access.write ? ~0ull : touched);
    if (stale != 0) incoherent(static_cast<Pipe>(line.copied.pipe), line.copied.epoch, true, access.write, begin, end);
    if (access.write) {
      if (line.stored == 0) line.stored_at = interval_;
      line.stored |= touched;
      line.store = current_epoch_;
    } else if ((touched & ~line.stored) != 0) {
      oldest = std::min(oldest, line.loaded);
    }
  }
  if (!access.write) note_pieces(access, groups_ ? interval_ : oldest);
}

// A copy reads or writes what the cache may hold.
void HazardTracker::past_cache(const Access& access) {
  const Range& range = access.range;
  const bool dense = range.pieces <= 1 || range.stride <= range.bytes;
  for (uint32_t i = 0; i < (dense ? 1 : range.pieces); i++) {
    const uint64_t begin = access.canonical + i * range.stride, end = begin + (dense ? range.span() : range.bytes);
    cache_.for_lines(begin, end, [&](uint64_t number, CachedLine& line, uint64_t bits) {
      const uint64_t at = std::max(begin, number * DataCache::kLine);
      const uint64_t to = std::min(end, (number + 1) * DataCache::kLine);
      if (line.stored != 0 && (access.write || (line.stored & bits) != 0))
        incoherent(Pipe::S, line.store, true, access.write, at, to);
      if (!access.write) return;
      line.stale |= bits;
      line.copied = {static_cast<int>(current_.pipe), current_epoch_};
    });
  }
}

void HazardTracker::write_back(uint64_t canonical) {
  cache_.forget(canonical / DataCache::kLine, [&](uint64_t n, const CachedLine& line) { written_back(n, line); });
}

void HazardTracker::write_all_back() {
  cache_.forget_all([&](uint64_t n, const CachedLine& line) { written_back(n, line); });
}

// Only now other cores can see what was stored; and whatever they have stored in the line meanwhile is lost.
void HazardTracker::written_back(uint64_t number, const CachedLine& line) {
  if (line.stored == 0 || !report_) return;
  AccessSite site = sites_[0][line.store - 1];
  const auto note = [&](uint64_t begin, uint64_t end, bool write, int interval) {
    site.write = write;
    GmAccess now{begin, end,        site,  groups_ ? interval_ : interval,
                 false, issued_[0], kOpen, static_cast<int>(views.size()) - 1,
                 {}};
    now.whole_lines = true;
    if (!continues(now)) gm_accesses.push_back(std::move(now));
  };
  const uint64_t begin = number * DataCache::kLine;
  note(begin, begin + DataCache::kLine, false, line.loaded);
  for (uint64_t at = 0; at < DataCache::kLine;) {
    if ((line.stored >> at & 1) == 0) {
      at++;
      continue;
    }
    uint64_t to = at;
    while (to < DataCache::kLine && (line.stored >> to & 1) != 0) to++;
    note(begin + at, begin + to, true, line.stored_at);
    at = to;
  }
}

}  // namespace vnpu
