// What the tiling function of ReduceSumLast hands to the kernel. Lengths are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ReduceSumLastTilingData)
TILING_DATA_FIELD_DEF(uint64_t, rowNum);
TILING_DATA_FIELD_DEF(uint64_t, rowsPerCore);  // rows of every core but the last
TILING_DATA_FIELD_DEF(uint64_t, rowLength);
TILING_DATA_FIELD_DEF(uint32_t, rowsPerLoop);  // rows whose sums are written with one copy
TILING_DATA_FIELD_DEF(uint32_t, tileCols);     // columns read with one copy, whole blocks
TILING_DATA_FIELD_DEF(uint32_t, reduceBytes);  // work space of ReduceSum over tileCols
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(ReduceSumLast, ReduceSumLastTilingData)
}  // namespace optiling
