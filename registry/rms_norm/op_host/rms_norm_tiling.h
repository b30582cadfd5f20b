// What the tiling function of RmsNorm hands to the kernel. Lengths are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(RmsNormTilingData)
TILING_DATA_FIELD_DEF(uint64_t, bigCoreNum);     // the first cores, with one row more each
TILING_DATA_FIELD_DEF(uint64_t, smallCoreRows);  // rows of one of the others
TILING_DATA_FIELD_DEF(uint32_t, rowLength);
TILING_DATA_FIELD_DEF(uint32_t, rowsPerLoop);  // key 0: rows of one loop
TILING_DATA_FIELD_DEF(uint32_t, tileCols);     // key 0: a row in whole blocks; key 1: columns of one loop
TILING_DATA_FIELD_DEF(uint32_t, reduceBytes);  // work space of ReduceSum over tileCols
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);
TILING_DATA_FIELD_DEF(float, epsilon);
TILING_DATA_FIELD_DEF(float, averageFactor);  // 1 / rowLength
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(RmsNorm, RmsNormTilingData)
}  // namespace optiling
