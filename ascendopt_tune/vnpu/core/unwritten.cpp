#include "unwritten.h"

#include <algorithm>

namespace vnpu {
namespace {

constexpr size_t kMaxUses = 64;  // per core: one cause repeats in every iteration

// f(block, bits of the block) for the bytes [begin, end); whole blocks in a loop that the compiler can vectorize.
template <typename F>
void for_blocks(uint64_t begin, uint64_t end, F f) {
  if (begin >= end) return;
  uint64_t first = begin / kBlockBytes;
  const uint64_t last = end / kBlockBytes;
  const uint32_t head = ~0u << begin % kBlockBytes, tail = (1u << end % kBlockBytes) - 1;
  if (first == last) return f(first, head & tail);
  if (begin % kBlockBytes) f(first++, head);
  for (uint64_t b = first; b < last; b++) f(b, ~0u);
  if (tail) f(last, tail);
}

// f(begin, end) of every piece, of all at once where they follow each other without a gap.
template <typename F>
void for_pieces(const Range& r, uint64_t base, F f) {
  if (r.bytes == 0 || r.pieces == 0) return;
  bool dense = r.pieces <= 1 || r.stride <= r.bytes;
  uint64_t begin = r.addr - base, bytes = dense ? r.span() : r.bytes;
  for (uint32_t i = 0; i < (dense ? 1 : r.pieces); i++) f(begin + i * r.stride, begin + i * r.stride + bytes);
}

Range piece(const Range& r, uint32_t i) { return {r.addr + i * r.stride, r.bytes, 1, 0}; }

}  // namespace

Unwritten::Unwritten(uint8_t* local, uint32_t bytes, bool on) : local_(local), on_(on) {
  if (on_) bits_.assign((bytes + kBlockBytes - 1) / kBlockBytes, ~0u);
}

bool Unwritten::any(const Range& local) const {
  if (!on_) return false;
  uint32_t found = 0;
  for_pieces(local, address(local_), [&](uint64_t begin, uint64_t end) {
    for_blocks(begin, end, [&](uint64_t b, uint32_t mask) { found |= bits_[b] & mask; });
  });
  return found != 0;
}

Unwritten::Part Unwritten::part(const Range& local) const {
  uint32_t found = 0, all = ~0u;
  for_pieces(local, address(local_), [&](uint64_t begin, uint64_t end) {
    for_blocks(begin, end, [&](uint64_t b, uint32_t mask) {
      found |= bits_[b] & mask;
      all &= bits_[b] | ~mask;
    });
  });
  return found == 0 ? Part::None : all == ~0u ? Part::All : Part::Some;
}

void Unwritten::write(const Range& local, uint32_t origin) {
  if (!on_) return;
  if (origin && origins_.empty()) origins_.resize(bits_.size());
  for_pieces(local, address(local_), [&](uint64_t begin, uint64_t end) {
    if (!origin) return for_blocks(begin, end, [&](uint64_t b, uint32_t mask) { bits_[b] &= ~mask; });
    for_blocks(begin, end, [&](uint64_t b, uint32_t mask) {
      bits_[b] |= mask;
      origins_[b] = origin;
    });
  });
}

void Unwritten::forget(const Range& local) {
  if (!on_) return;
  for_pieces(local, address(local_), [&](uint64_t begin, uint64_t end) {
    for_blocks(begin, end, [&](uint64_t b, uint32_t mask) {
      bits_[b] |= mask;
      if (!origins_.empty()) origins_[b] = 0;
    });
  });
}

uint32_t Unwritten::new_origin(const AccessSite& site, bool gm, uint64_t begin, uint64_t end) {
  for (size_t i = 0; i < known_.size(); i++)  // one site in a loop is one origin
    if (known_[i].site.pc == site.pc && known_[i].gm == gm) return static_cast<uint32_t>(i + 1);
  known_.push_back({site, gm, begin, end});
  known_.back().site.write = false;
  return static_cast<uint32_t>(known_.size());
}

uint32_t Unwritten::origin_of(const AccessSite& site, const Range& reads) {
  uint32_t origin = 0;
  uint64_t first = ~0ull, last = 0;
  for_pieces(reads, address(local_), [&](uint64_t begin, uint64_t end) {
    if (origin) return;
    for (uint64_t at = begin; at < end; at++) {
      if (!unwritten(at)) continue;
      if (!origins_.empty() && origins_[at / kBlockBytes]) {
        origin = origins_[at / kBlockBytes];
        return;
      }
      first = std::min(first, at);
      last = at + 1;
    }
  });
  return origin || first == ~0ull ? origin : new_origin(site, false, first, last);
}

void Unwritten::instruction(const AccessSite& site, const Access* accesses, size_t n, int result) {
  if (!on_) return;
  uint32_t whole = 0;  // the origin of what the sources hold
  if (std::any_of(accesses, accesses + n, [&](const Access& a) { return !a.write && any(a.range); })) {
    for (size_t i = 0; i < n; i++)
      if (!accesses[i].write && !whole) whole = origin_of(site, accesses[i].range);
    spread(site, accesses, n);
  } else {
    for (size_t i = 0; i < n; i++)
      if (accesses[i].write) write(accesses[i].range);
  }
  if (result >= 0) registers_[static_cast<size_t>(result)] = whole;
}

void Unwritten::spread(const AccessSite& site, const Access* accesses, size_t n) {
  // Origins first: the destination may be a source.
  struct Piece {
    Range range;
    uint32_t origin;
  };
  std::vector<Piece> written;
  const auto origin_of_piece = [&](uint32_t k, uint32_t pieces) {
    for (size_t i = 0; i < n; i++) {
      const Range& r = accesses[i].range;
      if (accesses[i].write || r.bytes == 0) continue;
      if (const uint32_t origin = origin_of(site, r.pieces == pieces ? piece(r, k) : r)) return origin;
    }
    return 0u;
  };
  for (size_t i = 0; i < n; i++) {
    const Range& w = accesses[i].range;
    if (!accesses[i].write || w.bytes == 0) continue;
    for (uint32_t k = 0; k < w.pieces; k++) written.push_back({piece(w, k), origin_of_piece(k, w.pieces)});
  }
  for (const Piece& p : written) write(p.range, p.origin);
}

void Unwritten::move(const AccessSite& site, const void* to, const void* from, uint64_t bytes) {
  if (!on_) return;
  Range source{address(from), static_cast<uint32_t>(bytes), 1, 0};
  Range target{address(to), static_cast<uint32_t>(bytes), 1, 0};
  if (!any(source)) return write(target);
  uint32_t origin = origin_of(site, source);
  std::vector<bool> bits(bytes);
  for (uint64_t i = 0; i < bytes; i++) bits[i] = unwritten(offset(source.addr) + i);
  for (uint64_t i = 0; i < bytes; i++) write({target.addr + i, 1, 1, 0}, bits[i] ? origin : 0);
}

void Unwritten::use(uint32_t origin, const AccessSite& sink, uint64_t begin, uint64_t end) {
  const Origin& o = known_[origin - 1];
  for (UnwrittenUse& u : uses)
    if (u.sink.pc == sink.pc && u.origin.pc == o.site.pc && u.sink_end == begin) {  // the next piece of the same
      u.sink_end = end;
      return;
    }
  if (uses.size() < kMaxUses) uses.push_back({o.site, o.gm, o.begin, o.end, sink, begin, end, 0, "", ""});
}

void Unwritten::scalar_load(const AccessSite& site, const Range& local) {
  if (on_ && any(local)) use(origin_of(site, local), site, 0, 0);
}

void Unwritten::register_load(const AccessSite& site, int result) {
  uint32_t origin = registers_[static_cast<size_t>(result)];
  if (origin) use(origin, site, 0, 0);
}

void Unwritten::load(const AccessSite& site, const void* to, const Allocation& from, uint64_t begin, uint64_t bytes) {
  if (!on_) return;
  const GmUnwritten* map = from.unwritten.load(std::memory_order_acquire);
  Range target{address(to), static_cast<uint32_t>(bytes), 1, 0};
  write(target);
  if (!map || !map->any(begin, begin + bytes)) return;
  uint32_t origin = 0;
  for (uint64_t i = 0; i < bytes; i++) {
    if (!map->any(begin + i, begin + i + 1)) continue;
    if (!origin) origin = new_origin(site, true, from.canonical + begin + i, from.canonical + begin + bytes);
    write({target.addr + i, 1, 1, 0}, origin);
  }
}

void Unwritten::adds_to(const AccessSite& site, const Allocation& to, uint64_t begin, uint64_t end) {
  const GmUnwritten* map = to.unwritten.load(std::memory_order_acquire);
  const uint64_t gm = to.canonical;
  if (map && map->any(begin, end)) use(new_origin(site, true, gm + begin, gm + end), site, gm + begin, gm + end);
}

void Unwritten::store_made(const AccessSite& site, const Allocation& to, uint64_t begin, uint64_t bytes,
                           const Range& from, bool atomic, Detached* detached) {
  if (!on_) return;
  const bool dirty = any(from);
  if (!dirty && !to.unwritten.load(std::memory_order_acquire)) return;
  if (atomic) adds_to(site, to, begin, begin + bytes);
  if (dirty || !atomic)
    detached ? detached->mark(to, begin, begin + bytes, dirty) : gm_unwritten(to)->set(begin, begin + bytes, dirty);
  if (dirty) use(origin_of(site, from), site, to.canonical + begin, to.canonical + begin + bytes);
}

void Unwritten::store(const AccessSite& site, const Allocation& to, uint64_t begin, const void* from, uint64_t bytes,
                      bool atomic, Detached* detached) {
  if (!on_) return;
  const auto set = [&](uint64_t first, uint64_t last, bool unset) {
    detached ? detached->mark(to, first, last, unset) : gm_unwritten(to)->set(first, last, unset);
  };
  const GmUnwritten* map = to.unwritten.load(std::memory_order_acquire);
  Range source{address(from), static_cast<uint32_t>(bytes), 1, 0};
  bool dirty = any(source);
  if (!map && !dirty) return;
  uint64_t end = begin + bytes, gm = to.canonical;
  if (atomic) adds_to(site, to, begin, end);
  if (!dirty) {
    if (!atomic) set(begin, end, false);
    return;
  }
  for (uint64_t i = 0; i < bytes; i++) {
    bool unset = unwritten(offset(source.addr) + i);
    if (unset || !atomic) set(begin + i, begin + i + 1, unset);
  }
  use(origin_of(site, source), site, gm + begin, gm + end);
}

void Unwritten::scalar_load(const AccessSite& site, const Allocation& from, uint64_t begin, uint64_t bytes) {
  if (!on_) return;
  const GmUnwritten* map = from.unwritten.load(std::memory_order_acquire);
  if (!map || !map->any(begin, begin + bytes)) return;
  use(new_origin(site, true, from.canonical + begin, from.canonical + begin + bytes), site, 0, 0);
}

std::vector<UnwrittenUse> standing(const std::vector<UnwrittenUse>& uses) {
  std::vector<UnwrittenUse> out;
  for (UnwrittenUse u : uses) {
    if (u.sink_end) {
      const Allocation* a = gm_find_canonical(u.sink_begin);
      const GmUnwritten* map = a ? a->unwritten.load(std::memory_order_acquire) : nullptr;
      if (!map || a->scratch) continue;
      // What lies behind the tensor, in its last block, is nobody's.
      uint64_t begin = u.sink_begin - a->canonical, end = std::min(u.sink_end - a->canonical, a->payload);
      while (begin < end && !map->any(begin, begin + 1)) begin++;
      while (end > begin && !map->any(end - 1, end)) end--;
      if (begin >= end) continue;
      u.sink_begin = a->canonical + begin;
      u.sink_end = a->canonical + end;
    }
    out.push_back(u);
  }
  return out;
}

}  // namespace vnpu
