// AscendC's interface for C (asc_...). Operators include it beside kernel_operator.h and call little of it; what is
// here is what they call on architecture 2201.
#pragma once
#include "kernel_operator.h"

ASCENDC_INLINE int64_t asc_get_block_idx() { return AscendC::GetBlockIdx(); }
ASCENDC_INLINE int64_t asc_get_block_num() { return AscendC::GetBlockNum(); }
ASCENDC_INLINE void asc_init() { AscendC::InitSocState(); }
// The data cache writes all of its lines back.
ASCENDC_INLINE void asc_dcci_entire_out() {
  vnpu::scalar_cost(1);
  vnpu::clean_cache(nullptr, true);
}
