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
  int next_index = 0;
};

Table& table() {
  static Table* t = new Table;  // never destroyed: torch frees device memory during interpreter exit
  return *t;
}

}  // namespace

void gm_register(void* p, size_t payload, size_t allocated) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  auto a = std::make_unique<Allocation>();
  a->base = reinterpret_cast<uint64_t>(p);
  a->payload = payload;
  a->allocated = allocated;
  a->canonical = t.next_canonical;
  a->index = t.next_index++;
  t.next_canonical += (allocated + 4095) / 4096 * 4096 + 4096;
  t.by_base[a->base] = std::move(a);
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
