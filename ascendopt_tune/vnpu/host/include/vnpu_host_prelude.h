// Included before every host source and precompiled: the host interfaces, and the standard headers that CANN's own
// headers bring along (operator sources rely on them).
#pragma once
// CANN's open repositories ask by this whether they are built as packages of their own, as here: what only CANN's whole
// installation has is looked for at run time then, and its absence is told.
#define NN_ENABLE_DLOPEN_LEGACY
#include <algorithm>
#include <array>
#include <cctype>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/alog_pub.h"
#include "base/err_msg.h"
#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/infer_shape_range_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "graph/utils/type_utils.h"
#include "platform/platform_infos_def.h"
#include "register/op_def_registry.h"
#include "register/op_impl_registry.h"
#include "register/tilingdata_base.h"
#include "register/tuning_bank_key_registry.h"
#include "register/tuning_tiling_registry.h"
#include "securec.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_interfaces.h"

// The numbers that were lifted out of a program's text (build/knobs.py), as they are when it is loaded.
extern "C" const uint64_t* vnpu_knob_table();
static const uint64_t* const vnpu_knobs = vnpu_knob_table();
static inline double vnpu_knob_real(size_t i) {
  double value;
  std::memcpy(&value, vnpu_knobs + i, sizeof value);
  return value;
}
