// Unit flags: one for each 512 bytes of L0C, by which the matrix unit and the pipe that brings its results out hand
// them over without flags of the program (asc-devkit, UnitFlag).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "knowledge.h"

namespace vnpu {

// What a product hands over as it makes it: row of tiles by row, or column by column, and how many of those.
struct Pieces {
  bool rows_first = false;
  uint32_t count = 0;
};

// An instruction, by its number on its pipe (0: none), and what it was ordered after.
struct Changer {
  uint32_t epoch = 0;
  Clock knew{};
};

class UnitFlags {
 public:
  static constexpr uint32_t kBytes = 512;

  // Of bytes [begin, end): whether every flag is (`raised`) or isn't set.
  bool all(uint64_t begin, uint64_t end, bool raised) const {
    for (uint64_t b = begin / kBytes; b * kBytes < end; b++)
      if (at(b).raised != raised) return false;
    return true;
  }
  // The newest instruction that raised, or lowered, one of them.
  Changer changed_by(uint64_t begin, uint64_t end, bool raised) const {
    Changer newest;
    for (uint64_t b = begin / kBytes; b < std::min<uint64_t>(blocks(end), flags_.size()); b++)
      if (flags_[b].by[raised].epoch > newest.epoch) newest = flags_[b].by[raised];
    return newest;
  }
  // In how many pieces what is taken in that order may follow what was made: 0, as a whole, unless one instruction made
  // just these bytes, and in that order.
  uint32_t pieces(uint64_t begin, uint64_t end, bool rows_first) const {
    const Flag& first = at(begin / kBytes);
    const bool same =
        first.begin == begin / kBytes && first.end == blocks(end) && first.pieces.rows_first == rows_first;
    return same && changed_only_by(begin, end, first.by[true].epoch) ? first.pieces.count : 0;
  }
  // Instruction `by` raises or lowers them.
  void change(uint64_t begin, uint64_t end, bool raised, const Changer& by, const Pieces& pieces = {}) {
    if (flags_.size() * kBytes < end) flags_.resize(blocks(end));
    for (uint64_t b = begin / kBytes; b * kBytes < end; b++) {
      flags_[b].raised = raised;
      flags_[b].by[raised] = by;
      if (!raised) continue;
      flags_[b].begin = begin / kBytes;
      flags_[b].end = blocks(end);
      flags_[b].pieces = pieces;
    }
  }
  void clear() { flags_.clear(); }

 private:
  struct Flag {
    bool raised = false;
    Changer by[2];                // that lowered, that raised it last
    uint64_t begin = 0, end = 0;  // of the blocks that were raised with it
    Pieces pieces;
  };
  static uint64_t blocks(uint64_t bytes) { return (bytes + kBytes - 1) / kBytes; }
  bool changed_only_by(uint64_t begin, uint64_t end, uint32_t by) const {
    for (uint64_t b = begin / kBytes; b * kBytes < end; b++)
      if (at(b).by[true].epoch != by) return false;
    return true;
  }
  const Flag& at(uint64_t block) const {
    static const Flag none;
    return block < flags_.size() ? flags_[block] : none;
  }

  std::vector<Flag> flags_;
};

}  // namespace vnpu
