// Copy between places of UB on the vector pipe.
#pragma once
#include "device.h"

namespace vnpu {

void vector_copy(const Operand& dst, const Operand& src, const Lanes& lanes);

}  // namespace vnpu
