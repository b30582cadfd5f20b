// Transfers of the cores of a task on their way through L2 and HBM, in the order of time.
#pragma once
#include <unordered_map>
#include <vector>

#include "bandwidth.h"
#include "core_sim.h"
#include "l2.h"
#include "windows.h"

namespace vnpu {

class Traffic {
 public:
  // `page_cycles`: what the address of a page takes that a core hasn't touched before; 0 where addresses are known.
  // `meetings` is meetings_of(traces), or empty for a core alone.
  Traffic(const std::vector<const Trace*>& traces, const Meetings& meetings, const Chip& chip, L2State& l2,
          double page_cycles)
      : traces_(traces),
        meetings_(meetings),
        chip_(chip),
        l2_(l2),
        bandwidth_(chip),
        windows_(chip),
        page_cycles_(page_cycles),
        begin_(page_cycles > 0 ? begin_of(traces) : 0),
        pages_(traces.size()),
        moving_(traces.size() * kPipes) {}

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
    double delay = 0;               // cycles that its requests wait for those of other cores
    uint64_t end = ~0ull;           // where the last transfer whose pages were looked up ends
  };
  UnderWay& moving(int core, Pipe pipe) { return moving_[static_cast<size_t>(core * kPipes + static_cast<int>(pipe))]; }
  static uint64_t begin_of(const std::vector<const Trace*>& traces);
  void arrive(const Arrival& a, const CoreSim* cores);
  double translated(const Arrival& a, const Transfer& t);  // when the addresses of all its pages are known

  const std::vector<const Trace*>& traces_;
  const Meetings& meetings_;
  const Chip& chip_;
  L2State& l2_;
  Bandwidth bandwidth_;
  Windows windows_;
  Arrivals arrivals_;
  const double page_cycles_;
  const uint64_t begin_;                                     // where the first page of the task begins
  std::vector<std::unordered_map<uint64_t, double>> pages_;  // of each core: when the page's address was known
  std::vector<UnderWay> moving_;                             // the transfer of each pipe of each core
  double hits_ = 0, misses_ = 0;
};

}  // namespace vnpu
