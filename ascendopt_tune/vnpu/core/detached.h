// A core that runs beside others as if it were alone: it reads global memory as it was before any of them ran, keeps
// what it writes to itself, and notes both. When they have ended, what they noted tells whether their order could have
// mattered: if not, what they kept goes to global memory; if so, it is dropped, as if they had never run.
//
// So nobody writes to global memory while detached cores run, and what a core does is the same on any thread. Whatever
// can't be told this way (atomics, stores of the scalar unit, meetings, prints, reading back what was written) makes a
// core refuse, which ends the attempt. As for hazards, memory that is mapped at two addresses counts as two.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "memory.h"

#include "vnpu/types.h"

namespace vnpu {

// Bytes of global memory, as host addresses.
class Footprint {
 public:
  void add(uint64_t begin, uint64_t end);
  void add(const Footprint& other);
  bool meets(uint64_t begin, uint64_t end) const;
  bool meets(const Footprint& other) const;

 private:
  std::map<uint64_t, uint64_t> runs_;  // begin -> end; they neither overlap nor touch
};

// What the detached cores of one attempt share. Thread-safe.
class Attempt {
 public:
  // Global memory has to be written now and then, or what is kept grows without limit.
  static constexpr uint64_t kMostKept = 16 << 20;  // bytes

  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void fail() { failed_.store(true, std::memory_order_relaxed); }
  bool full() const { return failed() || kept_.load(std::memory_order_relaxed) >= kMostKept; }
  void keeps(uint64_t bytes) { kept_.fetch_add(bytes, std::memory_order_relaxed); }
  // A core has ended: fails when it touched what another one wrote, or wrote what another one touched.
  void ended(const Footprint& reads, const Footprint& writes, uint64_t steps);
  // Whether a core that has taken so many steps may be waiting for something only a later attempt can show it: it polls
  // global memory, and the core that will write there is done.
  bool too_long(uint64_t steps) const;

 private:
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> kept_{0}, longest_{0};
  std::mutex mutex_;
  Footprint reads_, writes_;  // of the cores that have ended
};

class Detached {
 public:
  explicit Detached(Attempt& attempt) : attempt_(attempt) {}
  ~Detached();
  Detached(const Detached&) = delete;

  // Called for every instruction and every access to global memory; false: the core has to stop, the attempt failed.
  bool step();
  // The core is about to read or write. False: it has to stop, because it reads what it wrote.
  bool access(const Range& gm, bool write);
  void refuse() { attempt_.fail(); }
  // Bytes that go to `to`, and what becomes of bytes [begin, end) of an allocation that keeps track (written_map.h).
  void keep(void* to, const void* from, uint64_t bytes);
  void mark(const Allocation& in, uint64_t begin, uint64_t end, bool unwritten);
  // The kernel has ended.
  void end() { attempt_.ended(reads_, writes_, steps_); }
  // Everything that was kept goes to global memory.
  void apply();

 private:
  struct Kept {
    uint8_t* to;
    const uint8_t* from;
    uint64_t bytes;
  };
  struct Mark {
    const Allocation* in;
    uint64_t begin, end;
    bool unwritten;
  };
  Attempt& attempt_;
  uint64_t steps_ = 0;
  Footprint reads_, writes_;
  std::vector<std::unique_ptr<uint8_t[]>> chunks_;
  uint64_t free_ = 0;  // bytes left in the last one
  std::vector<Kept> kept_;
  std::vector<Mark> marks_;
};

}  // namespace vnpu
