#include "memory.h"

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace vnpu {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::map<uint64_t, std::unique_ptr<Allocation>> by_base;
  uint64_t next_canonical = 1 << 20;
  uint64_t next_constant = 1ull << 48;  // beyond all tensors
  int next_index = 0;
};

Table& table() {
  static Table* t = new Table;  // never destroyed: torch frees device memory during interpreter exit
  return *t;
}

// Takes canonical addresses from `next`, with a gap behind; the caller holds the lock.
void add(Table& t, void* p, size_t payload, size_t allocated, uint64_t& next, int index) {
  auto a = std::make_unique<Allocation>();
  a->base = reinterpret_cast<uint64_t>(p);
  a->payload = payload;
  a->allocated = allocated;
  a->canonical = next;
  a->index = index;
  next += (allocated + 4095) / 4096 * 4096 + 4096;
  t.by_base[a->base] = std::move(a);
}

}  // namespace

void gm_register(void* p, size_t payload, size_t allocated) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  add(t, p, payload, allocated, t.next_canonical, t.next_index++);
}

void gm_register_constants(void* p, size_t bytes) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  add(t, p, bytes, bytes, t.next_constant, -1);
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

}  // namespace vnpu
