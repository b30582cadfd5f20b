// What debugging asks of the machine.
#pragma once
#include <cstdint>

#include "types.h"

namespace vnpu {

// Prints elements of a global or local memory, those too that a core's scalar unit can't load from: what instructions
// have written so far. Costs no modelled time.
void dump(const void* data, DType dtype, uint32_t elements, const char* api);

}  // namespace vnpu
