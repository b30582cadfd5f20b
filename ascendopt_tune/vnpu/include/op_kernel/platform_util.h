// Facts of the platform that kernels of CANN's open operator repositories ask for (opbase,
// op_common/op_kernel/platform_util.h). Architecture 2201.
#pragma once
#include <cstdint>

#include "kernel_operator.h"

namespace Ops {
namespace Base {

// Bytes of a block of UB.
__aicore__ inline constexpr uint32_t GetUbBlockSize() { return 32; }
__aicore__ inline constexpr uint32_t GetVRegSize() { return 256; }

}  // namespace Base
}  // namespace Ops
