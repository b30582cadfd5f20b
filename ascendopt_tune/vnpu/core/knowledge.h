// What is known of what cores have done: the instructions that are complete, and visible, of each that anything is
// known of. Flags between cores and meetings hand it over.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "vnpu/types.h"

namespace vnpu {

using Clock = std::array<uint32_t, kPipes>;  // per pipe: number of its instructions known to be complete

inline void join(Clock& into, const Clock& other) {
  for (size_t p = 0; p < into.size(); p++) into[p] = std::max(into[p], other[p]);
}

class Knowledge {
 public:
  struct Known {
    int core;
    int barrier;  // the last of its flags and meetings that is known to be over, from 1
    Clock clock;
  };
  // Null when nothing is known of the core.
  const Known* of(int core) const {
    const size_t at = place(core);
    return at < all_.size() && all_[at].core == core ? &all_[at] : nullptr;
  }
  void add(const Known& known) {
    const size_t at = place(known.core);
    if (at == all_.size() || all_[at].core != known.core) {
      all_.insert(all_.begin() + static_cast<std::ptrdiff_t>(at), known);
      return;
    }
    all_[at].barrier = std::max(all_[at].barrier, known.barrier);
    join(all_[at].clock, known.clock);
  }
  void add(const Knowledge& other) {
    for (const Known& known : other.all_) add(known);
  }

 private:
  size_t place(int core) const {
    const auto before = [](const Known& k, int c) { return k.core < c; };
    return static_cast<size_t>(std::lower_bound(all_.begin(), all_.end(), core, before) - all_.begin());
  }
  std::vector<Known> all_;  // in the order of cores
};

inline void join(Knowledge& into, const Knowledge& other) { into.add(other); }

}  // namespace vnpu
