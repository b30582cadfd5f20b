// What the tiling function of Silu hands to the kernel. Lengths are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(SiluTilingData)
TILING_DATA_FIELD_DEF(uint64_t, totalLength);
TILING_DATA_FIELD_DEF(uint64_t, coreLength);  // elements of every core but the last
TILING_DATA_FIELD_DEF(uint32_t, tileLength);  // elements of one loop
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);   // buffers of each queue
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Silu, SiluTilingData)
}  // namespace optiling
