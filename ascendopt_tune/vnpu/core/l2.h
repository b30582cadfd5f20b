// What is in L2, line by line, and what must leave it: least recently used first.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>

#include "chip.h"
#include "vnpu/types.h"

namespace vnpu {

class L2State {
 public:
  L2State() = default;
  L2State(const L2State& other);
  L2State& operator=(const L2State&) = delete;
  struct Touched {
    double resident = 1;     // part of the transfer (0..1) that was in L2
    double dirty_bytes = 0;  // that had to be written back to make room for it
  };
  // L2 is full of lines of a kernel before, `dirty_share` of them dirty; they leave before any that are touched from
  // now on.
  void fill(double bytes, double dirty_share);
  // Moves `t` through L2, or past it when it is not cached.
  Touched touch(const Transfer& t, const Chip& chip);

 private:
  struct Page {
    uint64_t present = 0, dirty = 0;  // a bit for each of its 64 lines
    uint64_t used = 0;                // when it was touched last
  };
  struct Use {
    uint64_t page, when;
  };
  static constexpr uint64_t kChunk = 512;  // pages
  Page& page(uint64_t number);
  double make_room(const Chip& chip);  // returns the dirty bytes that left

  // By number. Only those that were touched, and the last one at hand: constants lie far behind all tensors
  // (memory.cpp).
  std::unordered_map<uint64_t, std::unique_ptr<Page[]>> chunks_;
  uint64_t at_hand_ = 0;
  Page* pages_at_hand_ = nullptr;
  std::deque<Use> uses_;  // in the order of time; a page that was touched again later is skipped
  uint64_t now_ = 0, lines_ = 0;
  double before_ = 0, before_dirty_ = 0;  // bytes of the kernel before, and the share of them that is dirty
};

}  // namespace vnpu
