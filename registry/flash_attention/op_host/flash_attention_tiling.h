// What the tiling function of FlashAttention hands to the kernel. Sizes are in elements.
#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(FlashAttentionTilingData)
TILING_DATA_FIELD_DEF(uint32_t, heads);
TILING_DATA_FIELD_DEF(uint32_t, queries);
TILING_DATA_FIELD_DEF(uint32_t, keys);
TILING_DATA_FIELD_DEF(uint32_t, depth);   // of a head
TILING_DATA_FIELD_DEF(uint32_t, blockQ);  // queries that a group works on at a time
TILING_DATA_FIELD_DEF(uint32_t, blockK);  // keys that it looks at at a time
TILING_DATA_FIELD_DEF(float, scale);
TILING_DATA_FIELD_DEF(uint32_t, causal);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(FlashAttention, FlashAttentionTilingData)
}  // namespace optiling
