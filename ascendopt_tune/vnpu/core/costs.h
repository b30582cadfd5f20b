// What the recurring pieces of a trace cost on one chip, in cycles.
#pragma once
#include <vector>

#include "trace.h"

namespace vnpu {

class Costs {
 public:
  Costs(const Trace& trace, const Chip& chip) : trace_(trace), chip_(chip) { extend(); }

  double work(const Record& r) const { return works_[r.work]; }
  double scalar(const Record& r) const { return scalars_[r.scalar]; }
  double scalar_tail() const { return scalars_[trace_.scalar_tail]; }

  // Takes up what the trace has got since.
  void extend() {
    const auto& works = trace_.works.items();
    for (size_t i = works_.size(); i < works.size(); i++) {
      const InstructionCost& row = chip_.instructions[works[i].instruction];
      works_.push_back(works[i].heads * row.head + works[i].units * row.pace + works[i].cycles);
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
