// Flags between cores in the timing model: when every core raised each of them.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "bandwidth.h"

namespace vnpu {

class CrossFlags {
 public:
  CrossFlags(size_t cores, size_t flags) : raised_(cores, std::vector<std::vector<double>>(flags)) {}

  void raise(int core, int id, double now) {
    raised_[static_cast<size_t>(core)][static_cast<size_t>(id)].push_back(now);
    news_ = true;
  }
  // When all cores have raised the flag for the `n`-th time (from 0), kNever when that isn't known yet.
  double raised(size_t flag, size_t n) const {
    double latest = 0;
    for (const auto& core : raised_) latest = std::max(latest, n < core[flag].size() ? core[flag][n] : kNever);
    return latest;
  }
  // Was a flag raised since the last call?
  bool news() { return std::exchange(news_, false); }

 private:
  std::vector<std::vector<std::vector<double>>> raised_;  // [core][flag]: the times
  bool news_ = false;
};

}  // namespace vnpu
