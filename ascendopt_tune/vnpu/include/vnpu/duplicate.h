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
// lane k = first + k over the whole instruction: of `count` elements; of `lanes` of each repeat; of those that `mask`
// enables (others are counted, not written).
void index_elements(const Operand& dst, const Scalar& first, uint32_t count);
void index_lanes(const Operand& dst, const Scalar& first, uint64_t lanes, uint32_t repeat);
void index_masked(const Operand& dst, const Scalar& first, const uint64_t mask[2], uint32_t repeat);
// element k = first + k * step of `count` elements, rounded up to whole blocks where there are more than one.
void progression(const Operand& dst, const Scalar& first, const Scalar& step, uint32_t count);

}  // namespace vnpu
