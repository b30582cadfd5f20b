// gert::KernelContext, the base every context can be taken for.
#pragma once
#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

using KernelContext = ExtendedKernelContext;

}  // namespace gert
