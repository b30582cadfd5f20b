// Shadow memory: for every byte of local memory the number of the instruction that touched it last.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "vnpu/types.h"

namespace vnpu {

// A number for each 32-byte block, and for each byte of those blocks that were touched in part: kernels mostly touch
// whole blocks, and a contiguous range is then a vectorizable loop.
class Shadow {
 public:
  // Nobody has touched any of the `blocks`.
  void reset(uint32_t blocks) {
    if (blocks == newest_.size()) {  // most kernels touch a part of their local memory
      fill(touched_begin_, touched_end_, 0);
    } else {
      bytes_.reset();
      newest_.assign(blocks, 0);
      split_.assign(blocks, 0);
    }
    touched_begin_ = blocks;
    touched_end_ = 0;
  }
  bool empty() const { return newest_.empty(); }

  // Bytes [begin, end) were touched by instruction `epoch`, which is above all before it.
  void mark(uint64_t begin, uint64_t end, uint32_t epoch) {
    uint64_t first = (begin + kBlockBytes - 1) / kBlockBytes, last = end / kBlockBytes;  // whole blocks [first, last)
    if (begin % kBlockBytes) mark_part(begin, std::min(end, first * kBlockBytes), epoch);
    if (end % kBlockBytes && end / kBlockBytes >= first) mark_part(std::max(begin, last * kBlockBytes), end, epoch);
    if (first >= last) return;
    touch(first, last);
    fill(first, last, epoch);
  }
  // An upper bound of what newest() tells, quickly.
  uint32_t bound(uint64_t begin, uint64_t end) const {
    uint32_t newest = 0;
    for (uint64_t b = begin / kBlockBytes, last = (end + kBlockBytes - 1) / kBlockBytes; b < last; b++)
      newest = std::max(newest, newest_[b]);
    return newest;
  }
  // The newest instruction that touched a byte of [begin, end); 0 for none. `at` gets the first such byte, `to` the end
  // of the bytes it touched last without a gap.
  uint32_t newest(uint64_t begin, uint64_t end, uint64_t& at, uint64_t& to) const {
    uint32_t newest = 0;
    for (uint64_t i = begin; i < end;) {
      uint64_t block = i / kBlockBytes, next = split_[block] ? i + 1 : std::min(end, (block + 1) * kBlockBytes);
      uint32_t epoch = split_[block] ? bytes_[i] : newest_[block];
      if (epoch > newest) {
        newest = epoch;
        at = i;
        to = next;
      } else if (epoch == newest && to == i) {
        to = next;
      }
      i = next;
    }
    return newest;
  }

 private:
  struct Free {
    void operator()(uint32_t* p) const { std::free(p); }
  };

  void touch(uint64_t first, uint64_t last) {
    touched_begin_ = std::min(touched_begin_, first);
    touched_end_ = std::max(touched_end_, last);
  }
  // Blocks [first, last) whole, last touched by `epoch`.
  void fill(uint64_t first, uint64_t last, uint32_t epoch) {
    if (first >= last) return;
    std::fill(newest_.begin() + static_cast<int64_t>(first), newest_.begin() + static_cast<int64_t>(last), epoch);
    std::fill(split_.begin() + static_cast<int64_t>(first), split_.begin() + static_cast<int64_t>(last), uint8_t{0});
  }
  void mark_part(uint64_t begin, uint64_t end, uint32_t epoch) {
    uint64_t block = begin / kBlockBytes;
    touch(block, block + 1);
    // calloc: most kernels split few blocks, and memory nobody touches costs nothing.
    if (!bytes_) bytes_.reset(static_cast<uint32_t*>(std::calloc(newest_.size() * kBlockBytes, sizeof(uint32_t))));
    uint32_t* bytes = bytes_.get();
    if (!bytes) throw std::bad_alloc();
    if (!split_[block]) std::fill(bytes + block * kBlockBytes, bytes + (block + 1) * kBlockBytes, newest_[block]);
    std::fill(bytes + begin, bytes + end, epoch);
    split_[block] = 1;
    newest_[block] = epoch;
  }

  uint64_t touched_begin_ = 0, touched_end_ = 0;  // blocks in front of these and behind them nobody has touched
  std::vector<uint32_t> newest_;
  std::vector<uint8_t> split_;  // the block's bytes differ: see bytes_
  std::unique_ptr<uint32_t[], Free> bytes_;
};

}  // namespace vnpu
