// Hazards between cores: a sweep over what all of them touched of global memory, interval by interval.
#include <algorithm>
#include <cstring>

#include "hazard.h"
#include "words.h"

namespace vnpu {
namespace {

using GmAccess = HazardTracker::GmAccess;

// Do two writes store the same where they overlap? Only told of writes whose bytes were kept.
bool store_the_same(const GmAccess& a, const GmAccess& b) {
  if (!a.site.write || !b.site.write || a.bytes.empty() || b.bytes.empty()) return false;
  const uint64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
  return std::memcmp(&a.bytes[begin - a.begin], &b.bytes[begin - b.begin], end - begin) == 0;
}

// An access in one of the intervals it belongs to.
struct Item {
  uint64_t begin, end;
  int core;
  const GmAccess* access;
  int interval;
};

// All accesses of all cores; one that a barrier doesn't cover goes on in the intervals behind it.
std::vector<Item> in_order(const std::vector<const HazardTracker*>& cores) {
  int last = 0;
  for (const HazardTracker* core : cores)
    for (const auto& a : core->gm_accesses) last = std::max(last, a.interval);
  std::vector<Item> items;
  for (size_t c = 0; c < cores.size(); c++)
    for (const auto& a : cores[c]->gm_accesses)
      for (int i = a.interval; i <= last && (i == a.interval || i < a.until); i++)
        items.push_back({a.begin, a.end, static_cast<int>(c), &a, i});
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.interval != b.interval ? a.interval < b.interval
           : a.begin != b.begin     ? a.begin < b.begin
                                    : a.core < b.core;
  });
  return items;
}

enum Kind { kRead, kAtomic, kWrite, kKept, kKinds };  // kKept: a write whose bytes are known

Kind kind_of(const GmAccess& a) {
  if (!a.site.write) return kRead;
  if (a.atomic) return kAtomic;
  return a.bytes.empty() ? kWrite : kKept;
}

// The furthest-reaching access of each kind so far, of two cores: two of each are enough to find one of another core.
class Reached {
 public:
  void forget() {
    for (auto& of_kind : reach_)
      for (const Item*& item : of_kind) item = nullptr;
  }

  void add(const Item& item) {
    auto& of_kind = reach_[kind_of(*item.access)];
    for (const Item*& r : of_kind)
      if (r && r->core == item.core) {
        if (item.end > r->end) r = &item;
        return;
      }
    const Item*& weakest = end_of(of_kind[0]) <= end_of(of_kind[1]) ? of_kind[0] : of_kind[1];
    if (item.end > end_of(weakest)) weakest = &item;
  }

  // f(other) of everything kept that `item` has to be ordered with and isn't.
  template <typename F>
  void for_unordered(const Item& item, F f) const {
    const Kind kind = kind_of(*item.access);
    for (int k = 0; k < kKinds; k++) {
      if (k == kind && (kind == kRead || kind == kAtomic)) continue;
      for (const Item* r : reach_[k])
        if (r && r->core != item.core && r->end > item.begin && !store_the_same(*r->access, *item.access)) f(*r);
    }
  }

 private:
  static uint64_t end_of(const Item* item) { return item ? item->end : 0; }
  const Item* reach_[kKinds][2] = {};
};

HazardReport report_of(const Item& first, const Item& second) {
  HazardReport h;
  h.first = first.access->site;
  h.second = second.access->site;
  h.first_core = first.core;
  h.second_core = second.core;
  h.gm = true;
  h.begin = second.begin;
  h.end = std::min(second.end, first.end);
  h.missing = std::string(kWords.meet) + " (or another synchronization between cores)";
  return h;
}

}  // namespace

void HazardTracker::forget_overwritten() {
  struct Item {
    int interval;
    GmAccess* write;
  };
  std::vector<Item> writes;
  for (GmAccess& a : gm_accesses)
    for (int i = a.interval; !a.bytes.empty() && i <= barriers_ && (i == a.interval || i < a.until); i++)
      writes.push_back({i, &a});
  std::sort(writes.begin(), writes.end(), [](const Item& a, const Item& b) {
    return a.interval != b.interval ? a.interval < b.interval : a.write->begin < b.write->begin;
  });
  // Against the furthest-reaching write so far: who agrees with it agrees with all others below it.
  const Item* furthest = nullptr;
  std::vector<GmAccess*> forgotten;
  for (const Item& item : writes) {
    GmAccess* a = item.write;
    const bool meets = furthest && furthest->interval == item.interval && furthest->write->end > a->begin;
    if (meets && !store_the_same(*furthest->write, *a)) forgotten.insert(forgotten.end(), {furthest->write, a});
    if (!meets || a->end > furthest->write->end) furthest = &item;
  }
  for (GmAccess* a : forgotten) a->bytes.clear();
}

std::vector<HazardReport> cross_core_hazards(const std::vector<const HazardTracker*>& cores, size_t limit) {
  const std::vector<Item> items = in_order(cores);
  std::vector<HazardReport> out;
  const auto report = [&](const Item& first, const Item& second) {
    const bool seen = std::any_of(out.begin(), out.end(), [&](const HazardReport& h) {
      return h.first.pc == first.access->site.pc && h.second.pc == second.access->site.pc;
    });
    if (!seen && out.size() < limit) out.push_back(report_of(first, second));
  };
  Reached reached;
  int interval = -1;
  for (const Item& item : items) {
    if (item.interval != interval) {
      interval = item.interval;
      reached.forget();
    }
    reached.for_unordered(item, [&](const Item& other) { report(other, item); });
    if (out.size() >= limit) return out;
    reached.add(item);
  }
  return out;
}

}  // namespace vnpu
