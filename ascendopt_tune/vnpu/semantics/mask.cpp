// Reading the state of the mask register; setting it is in core/device.cpp.
#include "vnpu/mask.h"

#include "../core/machine.h"

namespace vnpu {

bool counter_mode() { return core().counter_mode; }

}  // namespace vnpu
