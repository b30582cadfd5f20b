// Unit flags: one for each 512 bytes of L0C, by which the matrix unit and the pipe that brings its results out hand
// them over without flags of the program (asc-devkit, UnitFlag).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace vnpu {

class UnitFlags {
 public:
  static constexpr uint32_t kBytes = 512;

  // Of bytes [begin, end): whether every flag is (`raised`) or isn't set.
  bool all(uint64_t begin, uint64_t end, bool raised) const {
    for (uint64_t b = begin / kBytes; b * kBytes < end; b++)
      if (at(b).raised != raised) return false;
    return true;
  }
  // The newest instructions that raised or lowered one of them, by their numbers on their pipes; 0 for none.
  uint32_t changed_by(uint64_t begin, uint64_t end, bool raised) const {
    uint32_t newest = 0;
    for (uint64_t b = begin / kBytes; b * kBytes < end; b++) newest = std::max(newest, at(b).by[raised]);
    return newest;
  }
  // Instruction `by` raises or lowers them.
  void change(uint64_t begin, uint64_t end, bool raised, uint32_t by) {
    if (flags_.size() * kBytes < end) flags_.resize((end + kBytes - 1) / kBytes);
    for (uint64_t b = begin / kBytes; b * kBytes < end; b++) {
      flags_[b].raised = raised;
      flags_[b].by[raised] = by;
    }
  }
  void clear() { flags_.clear(); }

 private:
  struct Flag {
    bool raised = false;
    uint32_t by[2] = {};  // that lowered, that raised it last
  };
  Flag at(uint64_t block) const { return block < flags_.size() ? flags_[block] : Flag{}; }

  std::vector<Flag> flags_;
};

}  // namespace vnpu
