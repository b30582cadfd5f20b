// Vector instructions that fill: one value, one value per block, an index.
#pragma once
#include "device.h"

namespace vnpu {

// Every enabled lane of `dst` becomes the element at `value` (bits of the destination's element size).
void duplicate(const Operand& dst, uint64_t value, const Lanes& lanes);
// The same for `count` elements. Where they hold the value already, nothing has to be ordered with the call: what still
// reads them gets the same.
void duplicate_again(const Operand& dst, uint64_t value, uint32_t count);
// Element i of `src` fills block i of `dst`, eight a repeat.
void brcb(const Operand& dst, const Operand& src, uint8_t repeat);
// lane k = first + k * step over the whole instruction (masked lanes are counted, not written).
void create_index(const Operand& dst, const Scalar& first, const Scalar& step, const Lanes& lanes, const char* api);

}  // namespace vnpu
