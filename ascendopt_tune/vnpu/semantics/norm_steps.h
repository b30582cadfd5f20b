// What the bodies of normalizing APIs share: their vector instructions as a sequence, sums in the order of the
// device's, and the rules of their operands.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "composite.h"
#include "vnpu/adv_norm.h"

namespace vnpu {

constexpr uint32_t kRepeatFloats = kRepeatBytes / sizeof(float), kBlockFloats = kBlockBytes / sizeof(float);

// Repeats of so many floats.
inline double float_repeats(uint64_t elements) { return repeats_of(elements, sizeof(float)); }

// The vector instructions of one call, as asc-devkit's implementation issues them, and the barriers between them. The
// last step waits: it is issued with the operands that were declared meanwhile.
class NormSteps {
 public:
  explicit NormSteps(LocalCall& call) : call_(call), cost_(call.core) {}

  // `times` instructions of `repeats` each, with as many barriers: one behind each, or behind all of them.
  void add(const char* instruction, double repeats, uint64_t times = 1, uint64_t barriers = 1,
           DType type = DType::F32) {
    issue();
    const bool one_by_one = barriers >= times && times > 1;
    if (times > 0) cost_.add(instruction, repeats, one_by_one ? 1 : static_cast<double>(times), type);
    rounds_ = one_by_one ? times : 1;
    barrier_ = barriers > 0;
  }
  // One over all of so many floats, one after another.
  void each(std::initializer_list<const char*> instructions, uint64_t floats) {
    for (const char* instruction : instructions) add(instruction, float_repeats(floats));
  }
  void barrier() { barrier_ = true; }
  // Sums of rows of `columns` floats, to one place or two (asc-devkit, LayerNormReduceSumImpl).
  void row_sums(uint32_t rows, uint32_t columns) {
    if (columns > kRepeatFloats) {
      const uint32_t more = columns / kRepeatFloats - 1, tail = columns % kRepeatFloats;
      if (more) add("Add", more, rows, rows);
      if (tail) add("Add", 1, rows, rows);
    }
    add("ReduceRepeatSum", rows, 2, (rows + 254) / 255);
  }
  // A number of each row to all of it, through the register that Select reads (asc-devkit, BroadcastLastDim).
  void broadcast_rows(uint32_t rows, uint32_t columns) {
    add("Muls", repeats_of(columns, 2), 1, 1, DType::I16);
    add("SetCmpMask", 1, rows, rows, DType::None);
    add("Select", float_repeats(columns), rows, rows);
  }
  // A number of each row to all of it by Brcb, eight rows at once (asc-devkit, BrcbLastDimImpl).
  void brcb_rows(uint32_t rows, uint32_t columns) {
    const uint32_t lines = columns / kBlockFloats, groups = rows / kBlockFloats, rest = rows % kBlockFloats;
    add("Brcb", groups, groups ? lines : 0, lines);
    if (rest) add("Duplicate", float_repeats(columns), rest);
    barrier();
  }

  // Issues the last step.
  void issue() {
    for (uint64_t i = 0; i < rounds_ && !cost_.empty(); i++) {
      call_.issue(cost_.work());
      if (barrier_) call_.core.barrier(Pipe::V);
    }
    cost_.clear();
  }
  // The scalar unit reads `rows` numbers, and one instruction works with each.
  template <typename T>
  void by_scalars(const T* numbers, uint32_t rows, const char* instruction, uint32_t columns, bool barrier_each) {
    issue();
    call_.order(Pipe::V, Pipe::S);
    for (uint32_t r = 0; r < rows; r++) {
      call_.load(numbers + r);
      call_.order(Pipe::S, Pipe::V);
      call_.issue(instruction, DType::F32, float_repeats(columns));
      if (barrier_each || r + 1 == rows) call_.core.barrier(Pipe::V);
    }
  }

 private:
  LocalCall& call_;
  Composite cost_;
  uint64_t rounds_ = 1;
  bool barrier_ = false;
};

// Sum of n floats as the device makes it: repeats onto the first, then inside it.
inline float folded_sum(const float* v, uint32_t n) {
  float lanes[kRepeatFloats] = {};
  for (uint32_t i = 0; i < n; i++) lanes[i % kRepeatFloats] += v[i];
  return tree_sum<float, kRepeatFloats>(lanes);
}

inline std::vector<float> loaded_floats(const void* p, uint64_t first, uint64_t n, DType t) {
  std::vector<float> v(n);
  for (uint64_t i = 0; i < n; i++) v[i] = load_float(p, first + i, t);
  return v;
}

// Mean and variance of a row, with the reciprocal of its length.
struct RowStatistics {
  float mean = 0, variance = 0;
};
inline RowStatistics statistics_of(const std::vector<float>& row, uint32_t n, float reciprocal) {
  std::vector<float> v(n);
  for (uint32_t i = 0; i < n; i++) v[i] = row[i] * reciprocal;
  RowStatistics s;
  s.mean = folded_sum(v.data(), n);
  for (uint32_t i = 0; i < n; i++) v[i] = (row[i] - s.mean) * (row[i] - s.mean) * reciprocal;
  s.variance = folded_sum(v.data(), n);
  return s;
}

// A run of bytes and what it is called.
struct NamedRange {
  const void* begin;
  uint64_t bytes;
  const char* name;
};
inline void require_apart(const LocalCall& call, std::initializer_list<NamedRange> some,
                          std::initializer_list<NamedRange> others) {
  for (const NamedRange& a : some)
    for (const NamedRange& b : others) {
      const auto x = reinterpret_cast<uint64_t>(a.begin), y = reinterpret_cast<uint64_t>(b.begin);
      call.require(!a.bytes || !b.bytes || x + a.bytes <= y || y + b.bytes <= x,
                   std::string(a.name) + " and " + b.name + " may not share memory");
    }
}

// One number a row: like one operand, but what isn't written of a row's operands marks its own number alone.
inline void write_numbers(LocalCall& call, void* p, uint32_t rows, DType t, const char* name) {
  call.core.check_local({reinterpret_cast<uint64_t>(p), dtype_size(t), 1, 0}, kBlockBytes, call.api, call.pc, name);
  call.write(p, dtype_size(t), name, dtype_size(t), rows, dtype_size(t));
}

inline void require_blocks(const LocalCall& call, uint64_t columns, DType t, const char* what) {
  call.require(columns * dtype_size(t) % kBlockBytes == 0,
               std::string(what) + ", " + std::to_string(columns) + " elements, has to be a multiple of 32 B");
}

inline void require_bytes(const LocalCall& call, const Scratch& work, uint64_t needed, const char* why) {
  call.require(work.bytes >= needed, "sharedTmpBuffer, or what is left of the Unified Buffer, of " +
                                         std::to_string(work.bytes) + " B is too small: " + std::to_string(needed) +
                                         " B are " + why);
}

// An empty tiling is an error, not a shape of nothing.
inline bool nothing_to_do(const NormPieces& p, uint32_t rows, uint32_t columns) {
  return p.piece > 0 && (rows == 0 || columns == 0);
}

// The tiling is filled, and there is as much temporary memory as it was made for.
inline void require_tiling(const LocalCall& call, const NormPieces& p, const Scratch& work, const char* filled_by) {
  call.require(p.piece > 0,
               std::string("tiling is empty; ") + filled_by + " fills it on the host, given enough memory");
  require_bytes(call, work, uint64_t(p.needed) * sizeof(float), "what the tiling was made for");
  require_bytes(call, work, uint64_t(p.end) * sizeof(float), "what the tiling's pieces take");
}

}  // namespace vnpu
