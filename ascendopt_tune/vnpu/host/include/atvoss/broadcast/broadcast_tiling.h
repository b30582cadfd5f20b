// Tiling of CANN's template for broadcasting kernels of later architectures (opbase, op_common/atvoss). Host sources of
// 2201 include headers of theirs that name these types; what is declared of them here is the names.
#pragma once
#include "exe_graph/runtime/tiling_context.h"

namespace Ops {
namespace Base {

template <typename Dag>
class BroadcastBaseTiling;

}  // namespace Base
}  // namespace Ops
