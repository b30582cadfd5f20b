// Bandwidth of global memory, shared by every core: who gets how much of HBM and of L2 while transfers overlap.
#pragma once
#include <cstdint>
#include <limits>
#include <queue>

#include "chip.h"
#include "vnpu/types.h"

namespace vnpu {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Processor sharing: transfers of one kind progress at one rate, so a kind needs a single counter of bytes served; a
// transfer is done when the counter has grown by its size. Times in cycles, rates in bytes per cycle.
class Bandwidth {
 public:
  enum Kind {
    kReadHbm,    // a read that misses L2, or goes past it
    kReadL2,     // a read that hits
    kWriteL2,    // a write on its way into L2
    kWriteBack,  // dirty lines that make room, and writes past L2
    kKinds,
  };
  static constexpr int kNobody = -1;
  struct Done {
    int core;  // kNobody: traffic that no core waits for
    Pipe pipe;
    uint32_t number;  // of the instruction on its pipe, from 1
    Kind kind;
  };

  explicit Bandwidth(const Chip& chip);
  void arrive(double now, double bytes, Done done);
  double next() const;  // time of the next completion, kNever when nothing moves
  Done finish();
  bool awaited() const { return awaited_ > 0; }  // whether a core waits for anything that is under way
  // Whether reads from HBM get less than their cores could take.
  bool contended() const {
    return !classes_[kReadHbm].waiting.empty() && classes_[kReadHbm].rate < classes_[kReadHbm].cap;
  }

 private:
  struct Item {
    double target;
    uint64_t sequence;
    Done done;
    bool operator<(const Item& o) const { return target != o.target ? target > o.target : sequence > o.sequence; }
  };
  struct Class {
    double cap = kNever, served = 0, rate = 0;
    std::priority_queue<Item> waiting;
  };

  void serve(double now);
  void update_rates();

  double hbm_, l2_, now_ = 0;
  Class classes_[kKinds];
  uint64_t sequence_ = 0, awaited_ = 0;
};

}  // namespace vnpu
