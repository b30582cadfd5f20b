// What the recurring pieces of a trace cost on one chip, in cycles.
#pragma once
#include <vector>

#include "trace.h"

namespace vnpu {

class Costs {
 public:
  Costs(const Trace& trace, const Chip& chip) : trace_(trace), chip_(chip) { extend(); }

  double work(const Record& r) const { return works_[r.work]; }
  // Of its last instruction; less than 0: as its pipe's.
  double result(const Record& r) const { return chip_.instructions[trace_.works.items()[r.work].instruction].result; }
  double scalar(const Record& r) const { return scalars_[r.scalar]; }
  double scalar_tail() const { return scalars_[trace_.scalar_tail]; }

  // Takes up what the trace has got since.
  void extend() {
    const auto& works = trace_.works.items();
    for (size_t i = works_.size(); i < works.size(); i++) {
      const Work& w = works[i];
      const InstructionCost& row = chip_.instructions[w.instruction];
      // What a work refers to was numbered before it. Number 0 costs nothing.
      const double rest = w.rest ? works_[w.rest] : 0;
      works_.push_back(w.heads * row.head + w.units * row.pace + w.cycles + rest);
    }
    const auto& scalars = trace_.scalars.items();
    for (size_t i = scalars_.size(); i < scalars.size(); i++) {
      double cycles = 0;
      for (size_t k = 0; k < kScalarKinds; k++) cycles += scalars[i].counts[k] * chip_.scalar[k];
      scalars_.push_back(cycles);
    }
  }

 private:
  const Trace& trace_;
  const Chip& chip_;
  std::vector<double> works_, scalars_;
};

}  // namespace vnpu
