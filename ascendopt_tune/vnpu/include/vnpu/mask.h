// The mask register as the headers need it beside device.h.
#pragma once

namespace vnpu {

// Whether the mask register counts elements (SetMaskCount) instead of enabling lanes of a repeat.
bool counter_mode();

}  // namespace vnpu
