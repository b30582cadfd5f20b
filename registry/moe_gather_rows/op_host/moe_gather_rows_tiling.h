// What the tiling function of MoeGatherRows hands to the kernel. Lengths are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(MoeGatherRowsTilingData)
TILING_DATA_FIELD_DEF(uint64_t, tokenNum);     // rows of x
TILING_DATA_FIELD_DEF(uint64_t, rowNum);       // rows of y
TILING_DATA_FIELD_DEF(uint64_t, rowsPerCore);  // rows of y of every core but the last
TILING_DATA_FIELD_DEF(uint32_t, rowLength);
TILING_DATA_FIELD_DEF(uint32_t, rowsPerLoop);
TILING_DATA_FIELD_DEF(uint32_t, tileCols);  // columns of one loop, whole blocks
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(MoeGatherRows, MoeGatherRowsTilingData)
}  // namespace optiling
