// Trace: what one core issued, in program order. Written while the kernel executes, read by the timing model.
//
// No record holds a time: what an instruction costs is named in constants of the chip (Work, ScalarWork), so the same
// trace can be timed under another clock (replay.h).
#pragma once
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "chip.h"
#include "groups.h"
#include "vnpu/types.h"

namespace vnpu {

// What a vector instruction costs its pipe: heads * head + units * pace + cycles, head and pace those of a row of the
// chip's table; `cycles` are those that no row knows: bank conflicts. A call made of several instructions costs what
// `rest`, the number of another Work of the same trace, costs besides.
struct Work {
  uint32_t instruction = 0;  // row of Chip::instructions
  float heads = 0, units = 0, cycles = 0;
  uint32_t rest = 0;
};

// What the scalar unit did between two records.
struct ScalarWork {
  std::array<float, kScalarKinds> counts{};
};

// Values that recur: each is kept once and known by its number. Number 0 is the empty one.
template <typename T>
class Pool {
 public:
  Pool() : items_(1), known_(kKnown) {}
  uint32_t number(const T& item) {
    static_assert(std::has_unique_object_representations_v<uint32_t> && sizeof(T) % 4 == 0);
    uint32_t words[sizeof(T) / 4], h = 0;
    std::memcpy(words, &item, sizeof item);
    for (uint32_t w : words) h = (h ^ w) * 0x9e3779b1u;
    uint32_t& slot = known_[(h >> 16) % kKnown];
    if (std::memcmp(&items_[slot], &item, sizeof item) != 0) {
      slot = static_cast<uint32_t>(items_.size());
      items_.push_back(item);
    }
    return slot;
  }
  const std::vector<T>& items() const { return items_; }

 private:
  static constexpr size_t kKnown = 128;
  std::vector<T> items_;
  std::vector<uint32_t> known_;
};

struct Record {
  enum Kind : uint8_t {
    kInstr,    // `work` on `pipe`; `transfer` >= 0: a GM transfer under shared bandwidth instead
    kSetFlag,  // on `src`, seen by `pipe`, event `id`
    kWaitFlag,
    kBarrier,     // `pipe` waits for its own earlier instructions
    kBarrierAll,  // the scalar unit waits for every pipe
    kDepend,      // `pipe` waits for instruction number `epoch` of `src` (the compiler's automatic synchronization)
    kSyncAll,     // cores meet
    kCrossSet,    // `pipe` raises flag `id` between cores when its earlier instructions are complete
    kCrossWait,   // the scalar unit waits until flag `id` has arrived once more
    kScalar,      // scalar work only
  };
  Kind kind = kInstr;
  Pipe pipe = Pipe::S;
  Pipe src = Pipe::S;
  uint8_t id = 0;
  uint32_t epoch = 0;         // kInstr: number of this instruction on its pipe, from 1; kSyncAll, kCross...: the Scope,
                              // and from bit 8 on the number of a flag in global memory
  uint32_t scalar = 0;        // scalar work since the previous record, a number of Trace::scalars
  uint32_t work = 0;          // a number of Trace::works
  int32_t transfer = -1;      // index into Trace::transfers
  uint32_t pieces = 0;        // kDepend: in how many `src` hands its result over as it goes; 0: as a whole
  const char* api = nullptr;  // the AscendC call, for reports
  const void* pc = nullptr;   // return address in the kernel, resolved to file and line when a report needs it
};

inline Scope scope_of(const Record& r) { return static_cast<Scope>(r.epoch & 0xff); }
// Who gets a flag between cores that core `index` waits for, as CrossFlags numbers them.
inline int receiver_of(const Record& r, int index) {
  return scope_of(r) == Scope::Memory ? box_receiver(static_cast<int>(r.epoch >> 8)) : index;
}

struct Trace {
  std::vector<Record> records;
  std::vector<Transfer> transfers;
  Pool<Work> works;
  Pool<ScalarWork> scalars;
  uint32_t scalar_tail = 0;  // scalar work after the last record
  bool tiling = false;       // the kernel loads tiling data (GET_TILING_DATA)
  double conflict_cycles = 0, vector_repeats = 0;
  uint64_t mte2_bytes = 0, mte3_bytes = 0;
};

}  // namespace vnpu
