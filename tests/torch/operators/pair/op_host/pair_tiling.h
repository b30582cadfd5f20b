#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(PairTilingData)
TILING_DATA_FIELD_DEF(uint32_t, length);  // elements
TILING_DATA_FIELD_DEF(uint32_t, three);   // whether there is a z
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Pair, PairTilingData)
}  // namespace optiling
