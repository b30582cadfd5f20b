// What the tiling function of MatmulLeaky hands to the kernel.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(MatmulLeakyTilingData)
TILING_DATA_FIELD_DEF(uint32_t, m);
TILING_DATA_FIELD_DEF(uint32_t, n);
TILING_DATA_FIELD_DEF(uint32_t, k);
TILING_DATA_FIELD_DEF(uint32_t, slots);  // of the workspace of a group, a block of rows each
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(MatmulLeaky, MatmulLeakyTilingData)
}  // namespace optiling
