#include "l2.h"

#include <algorithm>

namespace vnpu {
namespace {

// Groups of `n` lines, a power of two below 64, in which `lines` has a bit.
uint64_t groups(uint64_t lines, uint32_t n) {
  for (uint32_t s = 1; s < n; s *= 2) lines |= lines >> s;
  return static_cast<uint64_t>(__builtin_popcountll(lines & ~0ull / ((1ull << n) - 1)));
}

}  // namespace

L2State::L2State(const L2State& other)
    : uses_(other.uses_),
      now_(other.now_),
      lines_(other.lines_),
      before_(other.before_),
      before_dirty_(other.before_dirty_) {
  for (const auto& [number, pages] : other.chunks_) {
    auto& copy = chunks_[number] = std::make_unique<Page[]>(kChunk);
    std::copy(pages.get(), pages.get() + kChunk, copy.get());
  }
}

void L2State::fill(double bytes, double dirty_share) {
  before_ = bytes;
  before_dirty_ = dirty_share;
}

L2State::Page& L2State::page(uint64_t number) {
  const uint64_t chunk = number / kChunk;
  if (!pages_at_hand_ || chunk != at_hand_) {
    auto& pages = chunks_[chunk];
    if (!pages) pages = std::make_unique<Page[]>(kChunk);
    at_hand_ = chunk;
    pages_at_hand_ = pages.get();
  }
  return pages_at_hand_[number % kChunk];
}

L2State::Touched L2State::touch(const Transfer& t, const Chip& chip) {
  uint64_t found = 0, requests = 0;
  const uint64_t line = chip.l2_line_bytes;
  const auto per_request = static_cast<uint32_t>(chip.gm_request_bytes / chip.l2_line_bytes);
  const bool joined = t.burst_stride == t.burst_bytes && !t.rearranged;  // one stretch, asked for as such
  const uint64_t length = joined ? uint64_t{t.bursts} * t.burst_bytes : t.burst_bytes;
  for (uint32_t b = 0; b < (joined ? std::min(1u, t.bursts) : t.bursts); b++) {
    uint64_t first = (t.gm_addr + b * t.burst_stride) / line;
    uint64_t last = (t.gm_addr + b * t.burst_stride + std::max<uint64_t>(1, length) - 1) / line;
    while (first <= last) {
      uint64_t number = first / 64, begin = first % 64, end = std::min<uint64_t>(63, begin + last - first);
      uint64_t mask = (~0ull >> (63 - end)) & (~0ull << begin);
      Page& page = this->page(number);
      found += groups(mask, per_request) - groups(mask & ~page.present, per_request);
      if (t.cached) {
        lines_ += static_cast<uint64_t>(__builtin_popcountll(mask & ~page.present));
        page.present |= mask;
        if (t.write) page.dirty |= mask;
        if (uses_.empty() || uses_.back().page != number) uses_.push_back({number, ++now_});
        page.used = now_;
      }
      requests += groups(mask, per_request);
      first += end - begin + 1;
    }
  }
  Touched out;
  out.resident = requests ? static_cast<double>(found) / static_cast<double>(requests) : 1;
  out.dirty_bytes = make_room(chip);
  return out;
}

double L2State::make_room(const Chip& chip) {
  const double held = static_cast<double>(lines_ * chip.l2_line_bytes);
  const double left = std::min(before_, std::max(0.0, held + before_ - chip.l2_kept_bytes()));
  before_ -= left;
  double dirty = left * before_dirty_;
  while (static_cast<double>(lines_ * chip.l2_line_bytes) > chip.l2_kept_bytes()) {
    Use use = uses_.front();
    uses_.pop_front();
    Page& page = this->page(use.page);
    if (page.used != use.when) continue;
    dirty += static_cast<double>(static_cast<uint64_t>(__builtin_popcountll(page.dirty)) * chip.l2_line_bytes);
    lines_ -= static_cast<uint64_t>(__builtin_popcountll(page.present));
    page = Page();
  }
  return dirty;
}

}  // namespace vnpu
