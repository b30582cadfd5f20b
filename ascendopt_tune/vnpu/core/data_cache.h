// What a core's data cache may hold of global memory, between the scalar unit and everybody else (asc-devkit,
// DataCacheCleanAndInvalid; SetValue and GetValue of GlobalTensor): lines of 64 bytes that it loads whole, stores to
// without telling anybody, and writes back whole, when the kernel asks for it or whenever it likes. Copies pass it by.
//
// So a line that the scalar unit stored to may hide its stores from copies, and undo what copies store to any byte of
// it; and one that it loaded may give it back what was there before a copy stored.
#pragma once
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace vnpu {

// Who has touched bytes of a line last, by the number of the instruction on its pipe.
struct CachedTouch {
  int pipe = 0;
  uint32_t epoch = 0;
};

struct CachedLine {
  uint64_t stored = 0;  // bytes that the scalar unit has stored, a bit each
  uint64_t stale = 0;   // bytes that copies of this core have stored since the line was loaded
  int loaded = 0;       // number of barriers between cores before the load
  int stored_at = 0;    // the same of the first store
  uint32_t store = 0;   // number of the scalar instruction that stored last
  CachedTouch copied;   // what made bytes stale last
};

class DataCache {
 public:
  static constexpr uint64_t kLine = 64;

  bool empty() const { return lines_.empty(); }
  // The line `number`, which is loaded now, after `barrier` barriers, unless it is there.
  CachedLine& load(uint64_t number, int barrier);
  // f(number, line, bits) of every line that is there and has bytes of [begin, end), a bit for each of them.
  template <typename F>
  void for_lines(uint64_t begin, uint64_t end, F f) {
    if (empty() || end <= first_ * kLine || begin > last_ * kLine + kLine - 1) return;
    const uint64_t first = begin / kLine, last = (end - 1) / kLine;
    if (last - first < lines_.size()) {
      for (uint64_t n = first; n <= last; n++)
        if (const auto at = lines_.find(n); at != lines_.end()) f(n, at->second, bits(n, begin, end));
    } else {
      for (auto& [n, line] : lines_)
        if (n >= first && n <= last) f(n, line, bits(n, begin, end));
    }
  }
  // Those of [begin, end) that line `number` has.
  static uint64_t bits(uint64_t number, uint64_t begin, uint64_t end);
  // Takes the line, or all lines, in the order of their addresses, out of the cache; f(number, line) of each.
  void forget(uint64_t number, const std::function<void(uint64_t, const CachedLine&)>& f);
  void forget_all(const std::function<void(uint64_t, const CachedLine&)>& f);

 private:
  std::unordered_map<uint64_t, CachedLine> lines_;
  uint64_t first_ = ~0ull, last_ = 0;  // numbers that bound those of the lines
};

}  // namespace vnpu
