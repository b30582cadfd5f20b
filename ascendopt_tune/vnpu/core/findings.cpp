#include "findings.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "words.h"

namespace vnpu {
namespace {

std::vector<std::string> relied_on(const std::vector<Core*>& cores) {
  std::set<std::string> all;
  for (Core* c : cores) {
    for (std::string& what : c->hazards.relies_on()) all.insert(std::move(what));
    if (c->divided_by_zero) all.insert("integer divisions by zero");
    if (c->atomic != Atomic::None)
      all.insert(std::string("atomic accumulation that stays switched on when it ends (") + kWords.atomic_off + ")");
    // What nothing resets when the next kernel begins, or when it has no pipe of its own (asc-devkit, InitSocState).
    if (c->counter_mode) all.insert("counter mode that stays switched on when it ends");
    if (c->short_floats.on) all.insert("float32 that stays shortened in products when it ends");
    if (c->asked_clock) all.insert(std::string("what time it is (") + kWords.clock + ")");
    for (int m = 0; m < kMemories; m++)
      if (c->overfull(static_cast<Memory>(m)))
        all.insert(std::string("buffers of more bytes than there are of ") + memory_name(static_cast<Memory>(m)) +
                   " (" + kWords.allocate_buffer + ")");
  }
  return {all.begin(), all.end()};
}

// Whether somebody raised a flag that nobody has waited for, or that not all of a team have raised.
bool flags_left(const std::vector<Core*>& cores, const Crossing& crossing) {
  return std::any_of(cores.begin(), cores.end(), [&](const Core* c) {
    for (int id = 0; id < static_cast<int>(c->chip.cross_flags); id++)
      if (crossing.pending(c->index, id) > 0 || crossing.gathered(c->index, id).first > 0) return true;
    return false;
  });
}

// One of each order, whichever core needed it.
std::vector<HazardReport> leaned_on(const std::vector<Core*>& cores) {
  std::vector<HazardReport> all;
  for (Core* c : cores)
    for (const HazardReport& h : c->hazards.leaned_on)
      if (std::none_of(all.begin(), all.end(), [&](const HazardReport& told) {
            return told.first.pipe == h.first.pipe && told.second.pipe == h.second.pipe;
          }))
        all.push_back(h);
  return all;
}

std::vector<SlackUse> slack_of(const std::vector<Core*>& cores, const BufferNames& names) {
  using Place = std::pair<int, bool>;  // allocation, and whether it was written there
  std::map<Place, std::pair<const Allocation*, uint64_t>> most;
  for (Core* c : cores)
    for (const auto& [allocation, past] : c->slack)
      for (const bool write : {false, true}) {
        auto& [where, bytes] = most[{allocation->index, write}];
        where = allocation;
        bytes = std::max(bytes, past[write ? 1 : 0]);
      }
  std::vector<SlackUse> out;
  for (const auto& [place, use] : most) {
    uint64_t begin = use.first->canonical, end = begin;
    if (use.second != 0) out.push_back({names.of(begin, end), place.second, use.second});
  }
  return out;
}

std::vector<UnwrittenUse> unwritten_uses(const std::vector<Core*>& cores, const BufferNames& names) {
  std::vector<UnwrittenUse> out;
  for (Core* c : cores)
    for (UnwrittenUse& u : standing(c->unwritten.uses)) {
      if (out.size() >= kMaxHazards) return out;
      u.core = c->index;
      if (u.origin_gm) {
        u.buffer = names.of(u.begin, u.end);
      } else if (const Memory memory = c->map.at(u.begin); memory != Memory::kCount) {
        u.memory = memory;
        u.begin -= c->map[memory].offset;
        u.end -= c->map[memory].offset;
      }
      if (u.sink_end) u.sink_buffer = names.of(u.sink_begin, u.sink_end);
      out.push_back(std::move(u));
    }
  return out;
}

std::vector<HazardReport> hazards_between(const std::vector<Core*>& cores, const Groups& groups) {
  std::vector<const HazardTracker*> trackers;
  for (Core* c : cores) {
    c->hazards.forget_overwritten();
    trackers.push_back(&c->hazards);
  }
  return cross_core_hazards(trackers, groups, kMaxHazards);
}

}  // namespace

std::string BufferNames::of(uint64_t& begin, uint64_t& end) const {
  const Allocation* a = gm_find_canonical(begin);
  if (!a) return "";
  begin -= a->canonical;
  end -= a->canonical;
  std::string name = "an allocation of " + std::to_string(a->payload) + " B";
  for (uint32_t i = 0; i < kernel.param_count; i++) {
    uint64_t value = 0;
    if (kernel.param_sizes[i] != sizeof value) continue;
    std::memcpy(&value, args[i], sizeof value);
    if (value >= a->base && value < a->base + a->allocated) return name + ", kernel parameter " + std::to_string(i);
  }
  return name;
}

void tell_habits(const std::vector<Core*>& cores, const Crossing& crossing, const BufferNames& names, Report& report) {
  for (Core* c : cores)
    for (const HazardReport& h : c->hazards.reports)
      if (report.hazards.size() < kMaxHazards) report.hazards.push_back(h);
  report.relies_on = relied_on(cores);
  if (flags_left(cores, crossing))
    report.relies_on.push_back(std::string("a flag between cores that nobody has waited for when it ends (") +
                               kWords.cross_set + " and " + kWords.cross_wait + " have to come in pairs)");
  report.leaned_on = leaned_on(cores);
  report.slack = slack_of(cores, names);
}

void tell_findings(const std::vector<Core*>& cores, const BufferNames& names, bool hazards, Report& report) {
  if (hazards)
    for (HazardReport& h : hazards_between(cores, report.groups)) report.hazards.push_back(std::move(h));
  for (HazardReport& h : report.hazards)
    if (h.gm) h.buffer = names.of(h.begin, h.end);
  report.unwritten = unwritten_uses(cores, names);
}

}  // namespace vnpu
