// Hazards between cores: a sweep over what all of them touched of global memory. Where cores only meet all at once,
// interval by interval; where groups have flags of their own, by what each core knew of the others.
#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

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

// kKept: a write whose bytes are known; kLine, kStored: a line of the data cache that is written back, and those of its
// bytes that the scalar unit stored.
enum Kind { kRead, kLine, kAtomic, kWrite, kKept, kStored, kKinds };

Kind kind_of(const GmAccess& a) {
  if (!a.site.write) return a.whole_lines ? kLine : kRead;
  if (a.whole_lines) return kStored;
  if (a.atomic) return kAtomic;
  return a.bytes.empty() ? kWrite : kKept;
}

// Whether two accesses to the same bytes need no order. Lines of two scalar units overwrite each other (asc-devkit,
// DataCacheCleanAndInvalid, third example); of a line and another core's copy beside what was stored nothing is said.
bool need_no_order(Kind a, Kind b) {
  if (a == kLine || b == kLine) return a != kStored && b != kStored;
  return a == b && (a == kRead || a == kAtomic);
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
      if (need_no_order(static_cast<Kind>(k), kind)) continue;
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
  if (first.access->whole_lines || second.access->whole_lines || first.access->site.pipe == Pipe::S ||
      second.access->site.pipe == Pipe::S)
    h.missing += std::string(", and ") + kWords.write_back;
  return h;
}

// Reports of pairs, each pair of sites once.
class Reports {
 public:
  explicit Reports(size_t limit) : limit_(limit) {}
  void add(const HazardReport& report) {
    const bool seen = std::any_of(all_.begin(), all_.end(), [&](const HazardReport& h) {
      return h.first.pc == report.first.pc && h.second.pc == report.second.pc;
    });
    if (!seen && !full()) all_.push_back(report);
  }
  bool full() const { return all_.size() >= limit_; }
  std::vector<HazardReport> take() { return std::move(all_); }

 private:
  const size_t limit_;
  std::vector<HazardReport> all_;
};

// Of accesses of one core on one pipe, and of one kind, those that nothing but the bytes they touch tells apart are a
// class: no synchronization is between them. The one that reaches furthest stands for it. Classes are in the order of
// the program, so those that another core's access has no order with follow each other.
class Classes {
 public:
  void add(const Item& item) {
    const GmAccess& a = *item.access;
    const auto [same, added] = all_.try_emplace({a.view, a.until, a.epoch}, item);
    if (!added && item.end > same->second.end) same->second = item;
  }
  // f(other) of each that still reaches to `item`, from the first on that isn't complete at instruction `known`, to the
  // first that `last` says is behind it. Forgets those that don't reach there.
  template <typename Last, typename F>
  void for_range(uint32_t known, const Item& item, Last last, F f) {
    auto at = all_.lower_bound(known);
    if (at != all_.begin()) --at;  // instructions of one class may be complete in part
    while (at != all_.end()) {
      const Item& other = at->second;
      if (other.end <= item.begin) {
        at = all_.erase(at);
        continue;
      }
      if (last(other)) return;
      f(other);
      ++at;
    }
  }

 private:
  struct Key {
    int view, until;
    uint32_t epoch;  // of the first that was added: tells nothing apart, but grows with the others
  };
  struct Before {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const { return a.view != b.view ? a.view < b.view : a.until < b.until; }
    bool operator()(const Key& a, uint32_t epoch) const { return a.epoch <= epoch; }
  };
  std::map<Key, Item, Before> all_;
};

// What has been touched so far, in the order of addresses.
class Touching {
 public:
  explicit Touching(const std::vector<const HazardTracker*>& cores) : cores_(cores) {}

  // f(other) of everything before that `item` has to be ordered with and isn't.
  template <typename F>
  void add(const Item& item, F f) {
    const Kind kind = kind_of(*item.access);
    for (int k = 0; k < kKinds; k++) {
      if (need_no_order(static_cast<Kind>(k), kind)) continue;
      for (auto& [whose, classes] : of_kind_[k])
        if (whose.first != item.core)
          classes.for_range(
              known(item, whose.first, whose.second), item, [&](const Item& other) { return before(item, other); },
              [&](const Item& other) {
                if (!before(other, item) && !store_the_same(*other.access, *item.access)) f(other);
              });
    }
    of_kind_[kind][{item.core, item.access->site.pipe}].add(item);
  }

 private:
  // Up to which instruction of a pipe of another core everything is complete, as the core of `item` knew.
  uint32_t known(const Item& item, int core, Pipe pipe) const {
    const HazardTracker& own = *cores_[static_cast<size_t>(item.core)];
    const Knowledge::Known* of = own.views[static_cast<size_t>(item.access->view)].of(core);
    return of ? of->clock[static_cast<size_t>(pipe)] : 0;
  }
  // Is `a` complete, as the core of `b` knew when it issued it?
  bool before(const Item& a, const Item& b) const { return known(b, a.core, a.access->site.pipe) >= a.access->epoch; }

  const std::vector<const HazardTracker*>& cores_;
  std::map<std::pair<int, Pipe>, Classes> of_kind_[kKinds];  // by core and pipe
};

// Cores that have flags of groups, or flags in global memory, between them.
void compare_groups(const std::vector<const HazardTracker*>& cores, const Groups& groups, Reports& reports) {
  std::vector<Item> items;
  for (size_t c = 0; c < cores.size(); c++)
    for (const auto& a : cores[c]->gm_accesses) items.push_back({a.begin, a.end, static_cast<int>(c), &a, 0});
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.core != b.core ? a.core < b.core : a.access < b.access;
  });
  Touching touching(cores);
  for (const Item& item : items) {
    touching.add(item, [&](const Item& other) {
      HazardReport h = report_of(other, item);
      if (groups.mixed() && groups.group(other.core) == groups.group(item.core))
        h.missing = std::string(kWords.cross_set) + " / " + kWords.cross_wait + " between the cores of the group";
      reports.add(h);
    });
    if (reports.full()) return;
  }
}

// Cores that only meet all at once.
void compare_intervals(const std::vector<const HazardTracker*>& cores, Reports& reports) {
  Reached reached;
  int interval = -1;
  for (const Item& item : in_order(cores)) {
    if (item.interval != interval) {
      interval = item.interval;
      reached.forget();
    }
    reached.for_unordered(item, [&](const Item& other) { reports.add(report_of(other, item)); });
    if (reports.full()) return;
    reached.add(item);
  }
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

std::vector<HazardReport> cross_core_hazards(const std::vector<const HazardTracker*>& cores, const Groups& groups,
                                             size_t limit) {
  Reports reports(limit);
  const bool in_pairs = std::any_of(cores.begin(), cores.end(), [](const HazardTracker* c) { return c->in_pairs; });
  in_pairs || groups.mixed() ? compare_groups(cores, groups, reports) : compare_intervals(cores, reports);
  return reports.take();
}

}  // namespace vnpu
