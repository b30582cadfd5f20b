// What the tiling function of GroupedMatmul hands to the kernel. Sizes are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(GroupedMatmulTilingData)
TILING_DATA_FIELD_DEF(uint32_t, groups);
TILING_DATA_FIELD_DEF(uint32_t, m);
TILING_DATA_FIELD_DEF(uint32_t, n);
TILING_DATA_FIELD_DEF(uint32_t, k);
TILING_DATA_FIELD_DEF(uint32_t, baseM);  // what of C lies in L0C at a time
TILING_DATA_FIELD_DEF(uint32_t, baseN);
TILING_DATA_FIELD_DEF(uint32_t, baseK);      // what of k lies in L0A and L0B at a time
TILING_DATA_FIELD_DEF(uint32_t, stepK);      // base blocks of k that one copy brings to L1
TILING_DATA_FIELD_DEF(uint32_t, l1Buffers);  // of each operand
TILING_DATA_FIELD_DEF(uint32_t, l0Buffers);
TILING_DATA_FIELD_DEF(uint32_t, l0cBuffers);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(GroupedMatmul, GroupedMatmulTilingData)
}  // namespace optiling
