// Flags between cores in the timing model: when every core raised each of them.
#pragma once
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "bandwidth.h"

namespace vnpu {

class CrossFlags {
 public:
  explicit CrossFlags(size_t cores) : raised_(cores) {}

  void raise(int core, int id, double now) {
    raised_[static_cast<size_t>(core)][id].push_back(now);
    news_ = true;
  }
  // When all cores have raised the flag for the `n`-th time (from 0), kNever when that isn't known yet.
  double raised(int id, size_t n) const {
    double latest = 0;
    for (const auto& core : raised_) latest = std::max(latest, n < core[id].size() ? core[id][n] : kNever);
    return latest;
  }
  // Was a flag raised since the last call?
  bool news() { return std::exchange(news_, false); }

 private:
  std::vector<std::array<std::vector<double>, kCrossFlags>> raised_;
  bool news_ = false;
};

}  // namespace vnpu
