#include "detached.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace vnpu {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;

// Chunks that nobody uses, for the next attempt: fresh memory costs more than copying into it.
struct Chunks {
  std::mutex mutex;
  std::vector<std::unique_ptr<uint8_t[]>> free;
};

Chunks& chunks() {
  static auto* instance = new Chunks;
  return *instance;
}

}  // namespace

void Footprint::add(uint64_t begin, uint64_t end) {
  auto next = runs_.upper_bound(begin);
  auto run = next;
  if (next != runs_.begin() && std::prev(next)->second >= begin) {
    run = std::prev(next);
    run->second = std::max(run->second, end);
  } else {
    run = runs_.emplace_hint(next, begin, end);
  }
  while (next != runs_.end() && next->first <= run->second) {
    run->second = std::max(run->second, next->second);
    next = runs_.erase(next);
  }
}

void Footprint::add(const Footprint& other) {
  for (const auto& [begin, end] : other.runs_) add(begin, end);
}

bool Footprint::meets(uint64_t begin, uint64_t end) const {
  const auto next = runs_.lower_bound(end);
  return next != runs_.begin() && std::prev(next)->second > begin;
}

bool Footprint::meets(const Footprint& other) const {
  return std::any_of(other.runs_.begin(), other.runs_.end(),
                     [&](const auto& run) { return meets(run.first, run.second); });
}

void Attempt::ended(const Footprint& reads, const Footprint& writes, uint64_t steps) {
  const std::lock_guard lock(mutex_);
  if (writes_.meets(reads) || writes_.meets(writes) || reads_.meets(writes)) return fail();
  reads_.add(reads);
  writes_.add(writes);
  longest_ = std::max(longest_.load(), std::max<uint64_t>(1, steps));
}

bool Attempt::too_long(uint64_t steps) const {
  const uint64_t longest = longest_.load(std::memory_order_relaxed);
  return longest != 0 && steps > (1 << 16) + 64 * longest;
}

Detached::~Detached() {
  Chunks& c = chunks();
  const std::lock_guard lock(c.mutex);
  std::move(chunks_.begin(), chunks_.end(), std::back_inserter(c.free));
}

bool Detached::step() {
  if (++steps_ % 1024 == 0 && attempt_.too_long(steps_)) attempt_.fail();
  return !attempt_.failed();
}

bool Detached::access(const Range& gm, bool write) {
  const bool dense = gm.pieces <= 1 || gm.stride <= gm.bytes;
  const uint64_t bytes = dense ? gm.span() : gm.bytes;
  for (uint32_t i = 0; i < (dense ? 1 : gm.pieces) && bytes != 0; i++) {
    const uint64_t begin = gm.addr + i * gm.stride;
    if (!write && writes_.meets(begin, begin + bytes)) attempt_.fail();
    (write ? writes_ : reads_).add(begin, begin + bytes);
  }
  return step();
}

void Detached::keep(void* to, const void* from, uint64_t bytes) {
  attempt_.keeps(bytes);
  auto* target = static_cast<uint8_t*>(to);
  const auto* source = static_cast<const uint8_t*>(from);
  while (bytes != 0) {
    if (free_ == 0) {
      Chunks& c = chunks();
      const std::lock_guard lock(c.mutex);
      if (c.free.empty()) c.free.emplace_back(new uint8_t[kChunkBytes]);
      chunks_.push_back(std::move(c.free.back()));
      c.free.pop_back();
      free_ = kChunkBytes;
    }
    uint8_t* at = chunks_.back().get() + (kChunkBytes - free_);
    const uint64_t piece = std::min(bytes, free_);
    std::memcpy(at, source, piece);
    if (!kept_.empty() && kept_.back().to + kept_.back().bytes == target &&
        kept_.back().from + kept_.back().bytes == at)
      kept_.back().bytes += piece;
    else
      kept_.push_back({target, at, piece});
    free_ -= piece;
    bytes -= piece;
    target += piece;
    source += piece;
  }
}

void Detached::mark(const Allocation& in, uint64_t begin, uint64_t end, bool unwritten) {
  if (!marks_.empty()) {
    Mark& last = marks_.back();
    if (last.in == &in && last.end == begin && last.unwritten == unwritten) {
      last.end = end;
      return;
    }
  }
  marks_.push_back({&in, begin, end, unwritten});
}

void Detached::apply() {
  for (const Kept& k : kept_) std::memcpy(k.to, k.from, k.bytes);
  for (const Mark& m : marks_) {
    GmUnwritten* map = m.unwritten ? gm_unwritten(*m.in) : m.in->unwritten.load(std::memory_order_acquire);
    if (map) map->set(m.begin, m.end, m.unwritten);
  }
}

}  // namespace vnpu
