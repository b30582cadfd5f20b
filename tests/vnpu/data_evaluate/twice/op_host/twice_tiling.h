#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(TwiceTilingData)
TILING_DATA_FIELD_DEF(uint32_t, total);    // elements
TILING_DATA_FIELD_DEF(uint32_t, perCore);  // elements of one core
TILING_DATA_FIELD_DEF(uint32_t, tile);     // elements of one loop
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Twice, TwiceTilingData)
}  // namespace optiling
