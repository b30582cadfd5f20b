// What an AscendC kernel includes. One family of APIs per header under ascendc/.
#pragma once
#include "ascendc/types.h"
#include "ascendc/tensor.h"
#include "ascendc/sync.h"
#include "ascendc/pipe.h"
#include "ascendc/system.h"
#include "ascendc/data_copy.h"
#include "ascendc/control.h"
#include "ascendc/data_copy_slice.h"
#include "ascendc/local_allocator.h"
#include "ascendc/vec_binary.h"
#include "ascendc/vec_unary.h"
#include "ascendc/vec_scalar.h"
#include "ascendc/vec_duplicate.h"
#include "ascendc/vec_cast.h"
#include "ascendc/vec_compare.h"
#include "ascendc/vec_mask.h"
#include "ascendc/vec_copy.h"
#include "ascendc/core_flags.h"
#include "ascendc/vec_reduce.h"
#include "ascendc/vec_gather.h"
#include "ascendc/vec_transpose.h"
#include "ascendc/vec_sort.h"
#include "ascendc/fill_global.h"
#include "ascendc/adv_filter.h"
#include "ascendc/adv_math.h"
#include "ascendc/adv_quant.h"
#include "ascendc/adv_ascend_quant.h"
#include "ascendc/adv_compose.h"
#include "ascendc/adv_flash.h"
#include "ascendc/adv_norm.h"
#include "ascendc/adv_norm_axes.h"
#include "ascendc/adv_softmax.h"
#include "ascendc/adv_rows.h"
#include "ascendc/adv_reduce.h"
#include "ascendc/adv_sort.h"
#include "ascendc/adv_transpose.h"
#include "ascendc/cube_load.h"
#include "ascendc/cube_load3d.h"
#include "ascendc/cube_mmad.h"
#include "ascendc/cube_fixpipe.h"
#include "ascendc/instructions.h"
#include "ascendc/layout.h"
#include "ascendc/adv_transform.h"
#include "ascendc/matmul.h"
#include "ascendc/matmul_messages.h"
#include "ascendc/list_tensor.h"
#include "ascendc/debug.h"
#include "ascendc/scalar_functions.h"
#if __has_include("ascendc/not_covered.h")
#include "ascendc/not_covered.h"
#endif
#include "ascendc/unqualified.h"
#include "vnpu_export.h"

// CANN's header makes these visible without their namespace.
using AscendC::core_type_of_pass;  // g_coreType
using AscendC::GetBlockIdx;
using AscendC::GetBlockNum;
using AscendC::GetTPipePtr;

// What the device's compiler knows without a header: branch hints, scalar minimum and maximum.
constexpr bool likely(bool condition) { return condition; }
constexpr bool unlikely(bool condition) { return condition; }
#define VNPU_MIN_MAX(T)                                    \
  ASCENDC_INLINE T min(T a, T b) { return b < a ? b : a; } \
  ASCENDC_INLINE T max(T a, T b) { return a < b ? b : a; }
VNPU_MIN_MAX(int32_t)
VNPU_MIN_MAX(uint32_t)
VNPU_MIN_MAX(int64_t)
VNPU_MIN_MAX(uint64_t)
VNPU_MIN_MAX(float)
#undef VNPU_MIN_MAX
