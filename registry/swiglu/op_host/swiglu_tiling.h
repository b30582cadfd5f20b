// What the tiling function of Swiglu hands to the kernel. A row of x has 2 * rowLength elements, one of y rowLength.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(SwigluTilingData)
TILING_DATA_FIELD_DEF(uint64_t, bigCoreNum);     // the first cores, with one row more each
TILING_DATA_FIELD_DEF(uint64_t, smallCoreRows);  // rows of one of the others
TILING_DATA_FIELD_DEF(uint32_t, rowLength);
TILING_DATA_FIELD_DEF(uint32_t, rowsPerLoop);
TILING_DATA_FIELD_DEF(uint32_t, tileCols);  // columns of one loop, whole 32-byte blocks
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Swiglu, SwigluTilingData)
}  // namespace optiling
