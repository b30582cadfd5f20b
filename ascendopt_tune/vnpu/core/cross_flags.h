// Flags between cores: who has raised them, and where they have arrived. Running kernels hand over what the raising
// cores know (T is Known, hazard.h), the timing model when they raised it (a time).
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "groups.h"

namespace vnpu {

inline void join(double& into, double other) { into = std::max(into, other); }

template <typename T>
class CrossFlags {
 public:
  explicit CrossFlags(const Groups& groups) : groups_(groups) {}

  // `core` raises a flag: it arrives when everybody of the scope has. Returns how often it has arrived, and nobody has
  // waited, where that is most.
  size_t raise(int core, Scope scope, int id, const T& what) {
    Team& team = teams_[{scope, groups_.team(core, scope), id}];
    team.member = core;
    const size_t round = raised_[{core, scope, id}]++ - team.through;
    while (team.rounds.size() <= round) team.rounds.push_back({groups_.members(core, scope), T{}});
    Round& r = team.rounds[round];
    join(r.what, what);
    if (--r.missing > 0) return 0;
    size_t most = 0;
    groups_.for_targets(core, scope, [&](int target) {
      arrive(target, id, r.what);
      most = std::max(most, pending(target, id));
    });
    team.rounds.pop_front();
    team.through++;
    return most;
  }
  void arrive(int core, int id, const T& what) {
    arrived_[{core, id}].push_back(what);
    news_ = true;
  }
  // How often the flag has arrived at the core and nobody has waited.
  size_t pending(int core, int id) const {
    const auto found = arrived_.find({core, id});
    return found == arrived_.end() ? 0 : found->second.size();
  }
  // What has arrived first; the core has waited for it.
  T take(int core, int id) {
    std::deque<T>& all = arrived_[{core, id}];
    T first = std::move(all.front());
    all.pop_front();
    return first;
  }
  // Has a flag arrived since the last call?
  bool news() { return std::exchange(news_, false); }

  // Of the flag that a core waits for: how many have raised it, of how many; none of 0 when nobody has who could.
  std::pair<int, int> gathered(int core, int id) const {
    for (const auto& [key, team] : teams_) {
      if (std::get<2>(key) != id || team.rounds.empty()) continue;
      const auto [member, scope] = std::pair(team.member, std::get<0>(key));
      bool for_core = false;
      groups_.for_targets(member, scope, [&](int target) { for_core = for_core || target == core; });
      const int all = groups_.members(member, scope);
      if (for_core) return {all - team.rounds.front().missing, all};
    }
    return {0, 0};
  }

 private:
  struct Round {
    int missing;
    T what;
  };
  struct Team {
    size_t through = 0;  // rounds that are complete
    int member = 0;
    std::deque<Round> rounds;
  };
  const Groups groups_;
  std::map<std::tuple<Scope, int, int>, Team> teams_;
  std::map<std::tuple<int, Scope, int>, size_t> raised_;
  std::map<std::pair<int, int>, std::deque<T>> arrived_;
  bool news_ = false;
};

}  // namespace vnpu
