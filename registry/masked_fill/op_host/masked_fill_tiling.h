// What the tiling function of MaskedFill hands to the kernel. Lengths are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(MaskedFillTilingData)
TILING_DATA_FIELD_DEF(uint64_t, totalLength);
TILING_DATA_FIELD_DEF(uint64_t, coreLength);  // elements of every core but the last
TILING_DATA_FIELD_DEF(uint32_t, tileLength);  // elements of one loop, a multiple of 128
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);
TILING_DATA_FIELD_DEF(float, value);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(MaskedFill, MaskedFillTilingData)
}  // namespace optiling
