// What the tiling function of Rope hands to the kernel. An item is a group of heads of one token.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(RopeTilingData)
TILING_DATA_FIELD_DEF(uint64_t, bigCoreNum);      // the first cores, with one item more each
TILING_DATA_FIELD_DEF(uint64_t, smallCoreItems);  // items of one of the others
TILING_DATA_FIELD_DEF(uint32_t, headNum);
TILING_DATA_FIELD_DEF(uint32_t, headsPerItem);
TILING_DATA_FIELD_DEF(uint32_t, itemsPerToken);
TILING_DATA_FIELD_DEF(uint32_t, halfDim);         // elements of half a head
TILING_DATA_FIELD_DEF(uint32_t, alignedHalfDim);  // the same in whole blocks
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Rope, RopeTilingData)
}  // namespace optiling
