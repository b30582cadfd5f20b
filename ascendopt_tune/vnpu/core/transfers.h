// What instructions that reach global memory have in common: their traffic, and stores under atomic accumulation.
#pragma once
#include <cstdint>

#include "vnpu/device.h"
#include "machine.h"

namespace vnpu {

inline uint32_t round_up(uint64_t n, uint32_t to) { return static_cast<uint32_t>((n + to - 1) / to * to); }

inline Range pieces(const void* p, uint64_t bytes, uint32_t n, uint64_t stride) {
  return {reinterpret_cast<uint64_t>(p), static_cast<uint32_t>(bytes), n, stride};
}

// GM traffic as the memory system sees it: pieces of `s`, from `stride` to `stride` bytes.
Transfer transfer_of(uint64_t canonical, const CopyShape& s, uint64_t stride, bool write, const Chip& chip);

// Stores to global memory, as atomic accumulation says.
void store(Core& c, void* dst, const void* src, uint64_t bytes, const char* api, const void* pc);

}  // namespace vnpu
