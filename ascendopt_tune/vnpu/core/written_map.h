// Which bytes of global memory somebody has written.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

namespace vnpu {

// The unwritten bytes of an allocation, a bit each. Cores may set different bytes at the same time.
class GmUnwritten {
 public:
  explicit GmUnwritten(uint64_t bytes) : words_(new std::atomic<uint64_t>[bytes / 64 + 1]()) {}

  void set(uint64_t begin, uint64_t end, bool unwritten) {
    const uint64_t first = (begin + 63) / 64, last = end / 64;  // whole words [first, last)
    if (first < last) {
      // At once: a workspace of the system has a quarter of a million of them, told before each launch.
      std::memset(static_cast<void*>(&words_[first]), unwritten ? 0xFF : 0, (last - first) * sizeof(words_[0]));
      set_parts(begin, first * 64, unwritten);
      set_parts(last * 64, end, unwritten);
    } else {
      set_parts(begin, end, unwritten);
    }
  }
  bool any(uint64_t begin, uint64_t end) const {
    uint64_t found = 0;
    for_words(begin, end,
              [&](uint64_t w, uint64_t mask) { found |= words_[w].load(std::memory_order_relaxed) & mask; });
    return found != 0;
  }

 private:
  void set_parts(uint64_t begin, uint64_t end, bool unwritten) {
    for_words(begin, end, [&](uint64_t w, uint64_t mask) {
      if (unwritten)
        words_[w].fetch_or(mask, std::memory_order_relaxed);
      else
        words_[w].fetch_and(~mask, std::memory_order_relaxed);
    });
  }
  // f(word, its bits) for the bytes [begin, end).
  template <typename F>
  static void for_words(uint64_t begin, uint64_t end, F f) {
    for (uint64_t w = begin / 64; w * 64 < end; w++) {
      uint64_t from = begin > w * 64 ? begin - w * 64 : 0, n = end - w * 64;
      f(w, (n >= 64 ? ~0ull : (1ull << n) - 1) & (~0ull << from));
    }
  }

  std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace vnpu
