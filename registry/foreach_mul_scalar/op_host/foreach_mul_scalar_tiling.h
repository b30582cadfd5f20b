// What the tiling function of ForeachMulScalar hands to the kernel.
//
// The tensors lie one behind the other in a row of 32-byte blocks, each from a new block on; the cores share that row.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
constexpr uint32_t MAX_TENSOR_NUM = 64;

BEGIN_TILING_DATA_DEF(ForeachMulScalarTilingData)
TILING_DATA_FIELD_DEF(uint64_t, bigCoreNum);       // the first cores, with one block more each
TILING_DATA_FIELD_DEF(uint64_t, smallCoreBlocks);  // blocks of one of the others
TILING_DATA_FIELD_DEF(uint32_t, tensorNum);
TILING_DATA_FIELD_DEF(uint32_t, tileLength);  // elements of one loop
TILING_DATA_FIELD_DEF(uint32_t, bufferNum);
TILING_DATA_FIELD_DEF_ARR(uint64_t, MAX_TENSOR_NUM, tensorLength);  // elements of each tensor
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(ForeachMulScalar, ForeachMulScalarTilingData)
}  // namespace optiling
