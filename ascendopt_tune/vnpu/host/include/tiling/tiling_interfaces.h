// What tiling/tiling_api.h has but the names in namespace optiling; a part of the prelude of every host source.
#pragma once
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "exe_graph/runtime/tiling_context.h"
#include "graph/types.h"
#include "graph/utils/type_utils.h"
#include "register/tilingdata_base.h"
#include "securec.h"
#include "tiling/composed_sizes.h"
#include "tiling/cube_tiling.h"
#include "tiling/math_sizes.h"
#include "tiling/norm_axes_tiling.h"
#include "tiling/more_sizes.h"
#include "tiling/norm_tiling.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/reduce_sizes.h"
#include "tiling/row_tiling.h"
#include "tiling/sort_tiling.h"
#include "tiling/temporary_sizes.h"
#include "tiling/transform_tiling.h"
#include "tiling/transpose_tiling.h"

namespace AscendC {
#ifndef VNPU_BLOCK_CUBE  // both sides have it, and some files are for both
#define VNPU_BLOCK_CUBE
constexpr uint32_t BLOCK_CUBE = 16;  // rows of a tile
#endif
#ifndef VNPU_ONE_BLK_SIZE
#define VNPU_ONE_BLK_SIZE
constexpr uint32_t ONE_BLK_SIZE = 32;  // bytes of a block
#endif
}  // namespace AscendC

// CANN's umbrella header leaks std into the sources that include it, and some of them say `vector` for std::vector.
using namespace std;
