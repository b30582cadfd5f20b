// What the tiling function of LayerNorm hands to the kernel. Lengths are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(LayerNormTilingData)
TILING_DATA_FIELD_DEF(uint64_t, rowNum);
TILING_DATA_FIELD_DEF(uint64_t, rowsPerCore);  // rows of every core but the last
TILING_DATA_FIELD_DEF(uint32_t, rowLength);
TILING_DATA_FIELD_DEF(uint32_t, alignedLength);  // rowLength in whole blocks
TILING_DATA_FIELD_DEF(uint32_t, reduceBytes);    // work space of ReduceSum
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);
TILING_DATA_FIELD_DEF(float, epsilon);
TILING_DATA_FIELD_DEF(float, averageFactor);  // 1 / rowLength
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(LayerNorm, LayerNormTilingData)
}  // namespace optiling
