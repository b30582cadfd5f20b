// Which local memories a core has, and where each lies in the one run of bytes that holds them all: shadows, unwritten
// bits and reports know local memory by its offset there.
#pragma once
#include <array>
#include <cstdint>

#include "chip.h"
#include "vnpu/types.h"

namespace vnpu {

// A vector core has the Unified Buffer; a cube core has L1, what its matrix unit reads and writes, and two tables.
enum class CoreKind : uint8_t { Vector, Cube };

struct Region {
  uint32_t offset = 0, bytes = 0;  // no bytes: cores of this kind don't have the memory
};

// How many of them a chip has.
inline uint32_t cores_of(CoreKind kind, const Chip& chip) { return kind == CoreKind::Vector ? chip.aiv : chip.aic; }

class LocalMap {
 public:
  LocalMap(const Chip& chip, CoreKind kind) {
    const auto add = [this](Memory m, uint32_t bytes) {
      regions_[static_cast<size_t>(m)] = {bytes_, bytes};
      bytes_ += bytes;
    };
    if (kind == CoreKind::Vector) {
      add(Memory::UB, chip.ub_bytes);
      return;
    }
    add(Memory::L1, chip.l1_bytes);
    add(Memory::L0A, chip.l0a_bytes);
    add(Memory::L0B, chip.l0b_bytes);
    add(Memory::L0C, chip.l0c_bytes);
    add(Memory::BT, chip.bias_table_bytes);
    add(Memory::FB, chip.fixpipe_buffer_bytes);
  }
  const Region& operator[](Memory m) const { return regions_[static_cast<size_t>(m)]; }
  uint32_t bytes() const { return bytes_; }  // of all together
  // The memory that holds the byte at `offset`; kCount for one behind them all.
  Memory at(uint64_t offset) const {
    for (size_t m = 0; m < regions_.size(); m++)
      if (offset - regions_[m].offset < regions_[m].bytes) return static_cast<Memory>(m);
    return Memory::kCount;
  }

 private:
  std::array<Region, static_cast<size_t>(Memory::kCount)> regions_{};
  uint32_t bytes_ = 0;
};

// The pipes that touch local memory, and those that touch global memory, of cores of a kind: a bit per pipe.
constexpr uint32_t pipe_bit(Pipe p) { return 1u << static_cast<int>(p); }
constexpr uint32_t pipes_of(CoreKind kind) {
  const uint32_t both = pipe_bit(Pipe::S) | pipe_bit(Pipe::MTE2) | pipe_bit(Pipe::MTE3);
  return both | (kind == CoreKind::Vector ? pipe_bit(Pipe::V)
                                          : pipe_bit(Pipe::MTE1) | pipe_bit(Pipe::M) | pipe_bit(Pipe::FIX));
}

}  // namespace vnpu
