// Transfers of the cores of a task on their way through L2 and HBM, in the order of time.
#pragma once
#include <vector>

#include "bandwidth.h"
#include "core_sim.h"
#include "l2.h"

namespace vnpu {

class Traffic {
 public:
  Traffic(const std::vector<const Trace*>& traces, const Chip& chip, L2State& l2)
      : traces_(traces), chip_(chip), l2_(l2), bandwidth_(chip), moving_(traces.size() * kPipes) {}

  const Bandwidth& bandwidth() const { return bandwidth_; }
  Arrivals& arrivals() { return arrivals_; }
  // Whether a core waits for anything that is under way.
  bool awaited() const { return !arrivals_.empty() || bandwidth_.awaited(); }
  double next() const;  // when the next thing happens, of an awaited one
  // Lets it happen. Returns the core that is told of it and may go on, -1 for none.
  int step(CoreSim* cores);

  double hit_bytes() const { return hits_; }  // of reads and writes that were in L2
  double miss_bytes() const { return misses_; }

 private:
  struct UnderWay {
    double back = 0, resident = 0;  // bytes that will be written back; the part that was in L2
  };
  UnderWay& moving(int core, Pipe pipe) { return moving_[static_cast<size_t>(core * kPipes + static_cast<int>(pipe))]; }
  void arrive(const Arrival& a);

  const std::vector<const Trace*>& traces_;
  const Chip& chip_;
  L2State& l2_;
  Bandwidth bandwidth_;
  Arrivals arrivals_;
  std::vector<UnderWay> moving_;  // the transfer of each pipe of each core
  double hits_ = 0, misses_ = 0;
};

}  // namespace vnpu
