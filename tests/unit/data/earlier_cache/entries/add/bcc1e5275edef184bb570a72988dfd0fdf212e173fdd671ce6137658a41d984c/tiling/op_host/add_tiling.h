// What the tiling function of Add hands to the kernel. Lengths are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(AddTilingData)
TILING_DATA_FIELD_DEF(uint64_t, totalLength);
TILING_DATA_FIELD_DEF(uint64_t, bigCoreNum);       // the first cores, with one block more each
TILING_DATA_FIELD_DEF(uint64_t, bigCoreLength);    // elements of one of them
TILING_DATA_FIELD_DEF(uint64_t, smallCoreLength);  // elements of one of the others
TILING_DATA_FIELD_DEF(uint32_t, tileLength);       // elements of one loop
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);        // buffers of each queue
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Add, AddTilingData)
}  // namespace optiling
