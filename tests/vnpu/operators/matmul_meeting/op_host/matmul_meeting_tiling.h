// What the tiling function of MatmulMeeting hands to the kernel.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(MatmulMeetingTilingData)
TILING_DATA_FIELD_DEF(uint32_t, m);
TILING_DATA_FIELD_DEF(uint32_t, n);
TILING_DATA_FIELD_DEF(uint32_t, k);
TILING_DATA_FIELD_DEF(uint32_t, rounds);  // of a block of rows a group, the last one with fewer groups
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(MatmulMeeting, MatmulMeetingTilingData)
}  // namespace optiling
