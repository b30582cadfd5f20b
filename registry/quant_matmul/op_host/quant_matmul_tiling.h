// What the tiling function of QuantMatmul hands to the kernel. Sizes are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(QuantMatmulTilingData)
TILING_DATA_FIELD_DEF(uint32_t, m);
TILING_DATA_FIELD_DEF(uint32_t, n);
TILING_DATA_FIELD_DEF(uint32_t, k);
TILING_DATA_FIELD_DEF(uint32_t, singleM);  // what of C one core computes
TILING_DATA_FIELD_DEF(uint32_t, singleN);
TILING_DATA_FIELD_DEF(uint32_t, baseM);  // what of it lies in L0C at a time
TILING_DATA_FIELD_DEF(uint32_t, baseN);
TILING_DATA_FIELD_DEF(uint32_t, baseK);      // what of k lies in L0A and L0B at a time
TILING_DATA_FIELD_DEF(uint32_t, stepK);      // base blocks of k that one copy brings to L1
TILING_DATA_FIELD_DEF(uint32_t, l1Buffers);  // of each operand
TILING_DATA_FIELD_DEF(uint32_t, l0Buffers);
TILING_DATA_FIELD_DEF(uint32_t, l0cBuffers);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(QuantMatmul, QuantMatmulTilingData)
}  // namespace optiling
