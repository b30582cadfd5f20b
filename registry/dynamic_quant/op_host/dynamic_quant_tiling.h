// What the tiling function of DynamicQuant hands to the kernel. Lengths are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(DynamicQuantTilingData)
TILING_DATA_FIELD_DEF(uint64_t, bigCoreNum);     // the first cores, with one row more each
TILING_DATA_FIELD_DEF(uint64_t, smallCoreRows);  // rows of one of the others
TILING_DATA_FIELD_DEF(uint32_t, rowLength);
TILING_DATA_FIELD_DEF(uint32_t, alignedLength);  // rowLength in whole blocks of x and of y
TILING_DATA_FIELD_DEF(uint32_t, rowsPerLoop);
TILING_DATA_FIELD_DEF(uint32_t, reduceBytes);  // work space of ReduceMax
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(DynamicQuant, DynamicQuantTilingData)
}  // namespace optiling
