#include "memory.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace vnpu {
namespace {

constexpr uint64_t kConstants = 1ull << 48;  // beyond all tensors

struct Table {
  std::shared_mutex mutex;
  std::map<uint64_t, std::unique_ptr<Allocation>> by_base;
  uint64_t next_canonical = 1 << 20;
  uint64_t next_constant = kConstants;
  int next_index = 0;
};

Table& table() {
  static Table* t = new Table;  // never destroyed: torch frees device memory during interpreter exit
  return *t;
}

// Takes canonical addresses from `next`, with a gap behind; the caller holds the lock.
void add_allocation(Table& t, void* p, size_t payload, size_t allocated, uint64_t& next, int index, bool room = false) {
  auto a = std::make_unique<Allocation>();
  a->room = room;
  a->base = reinterpret_cast<uint64_t>(p);
  a->payload = payload;
  a->allocated = allocated;
  a->canonical = next;
  a->index = index;
  next += (allocated + kCanonicalPage - 1) / kCanonicalPage * kCanonicalPage + kCanonicalPage;
  t.by_base[a->base] = std::move(a);
}

}  // namespace

void gm_register(void* p, size_t payload, size_t allocated) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  add_allocation(t, p, payload, allocated, t.next_canonical, t.next_index++);
}

void gm_register_constants(void* p, size_t bytes) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  add_allocation(t, p, bytes, bytes, t.next_constant, -1);
}

void gm_register_room(void* p, size_t bytes) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  add_allocation(t, p, bytes, bytes, t.next_constant, -1, true);
}

bool gm_is_room(uint64_t canonical) {
  if (canonical < kConstants) return false;
  const Allocation* a = gm_find_canonical(canonical);
  return a != nullptr && a->room;
}

void gm_unregister(void* p) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  t.by_base.erase(reinterpret_cast<uint64_t>(p));
}

const Allocation* gm_find(uint64_t addr) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  auto it = t.by_base.upper_bound(addr);
  if (it == t.by_base.begin()) return nullptr;
  const Allocation* a = std::prev(it)->second.get();
  return addr < a->base + a->allocated ? a : nullptr;
}

const Allocation* gm_find_canonical(uint64_t canonical) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  for (const auto& [base, a] : t.by_base)
    if (canonical >= a->canonical && canonical < a->canonical + a->allocated) return a.get();
  return nullptr;
}

GmUnwritten* gm_unwritten(const Allocation& a) {
  GmUnwritten* map = a.unwritten.load(std::memory_order_acquire);
  if (map) return map;
  auto made = std::make_unique<GmUnwritten>(a.allocated);
  if (a.unwritten.compare_exchange_strong(map, made.get())) return made.release();
  return map;
}

void gm_written(const void* p, size_t bytes) {
  const Allocation* a = gm_find(reinterpret_cast<uint64_t>(p));
  GmUnwritten* map = a ? a->unwritten.load(std::memory_order_acquire) : nullptr;
  if (!map) return;
  uint64_t begin = reinterpret_cast<uint64_t>(p) - a->base;
  map->set(begin, std::min(begin + bytes, a->allocated), false);
}

}  // namespace vnpu

extern "C" int vnpu_unwritten(void* p, uint64_t bytes, int scratch) {
  vnpu::Table& t = vnpu::table();
  std::unique_lock lock(t.mutex);
  uint64_t addr = reinterpret_cast<uint64_t>(p);
  auto it = t.by_base.upper_bound(addr);
  if (it == t.by_base.begin()) return 1;
  vnpu::Allocation& a = *std::prev(it)->second;
  if (addr + bytes > a.base + a.allocated) return 1;
  a.scratch = scratch != 0;
  vnpu::gm_unwritten(a)->set(addr - a.base, addr - a.base + bytes, true);
  return 0;
}
