// Gathering in local memory: what include/ascendc/vec_gather.h needs of libvnpu.so.
#pragma once
#include "device.h"

namespace vnpu {

// dst lane i = the element at src + base + offsets[i] bytes. `rep_stride` of dst in 32-byte blocks.
void gather(const Operand& dst, const void* src, const uint32_t* offsets, uint32_t base, const Lanes& lanes);
// The same by 32-byte blocks, eight a repeat.
void gather_blocks(const Operand& dst, const void* src, const uint32_t* offsets, uint32_t repeat);

// Compacts the elements of src whose bit in the pattern is set. `pattern` is a tensor of bits, or null for the fixed
// pattern number 1..7. Counter mode: `count` elements a repeat instead of 256 bytes.
struct GatherMaskCall {
  void* dst = nullptr;
  const void* src = nullptr;
  const void* pattern = nullptr;
  DType dtype = DType::None;
  uint32_t fixed = 0;
  bool counter = false;
  uint32_t count = 0;
  uint32_t repeat = 0, src_blk_stride = 1, src_rep_stride = 8, pattern_rep_stride = 8;
};
// Returns how many elements were kept.
uint64_t gather_mask(const GatherMaskCall& call);
// The same of the last call, from the register that it leaves the number in.
uint64_t gathered();

}  // namespace vnpu
