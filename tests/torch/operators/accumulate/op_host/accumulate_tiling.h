#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(AccumulateTilingData)
TILING_DATA_FIELD_DEF(uint32_t, length);  // elements
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Accumulate, AccumulateTilingData)
}  // namespace optiling
