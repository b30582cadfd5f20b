// Facts of the platform that tiling programs of CANN's open operator repositories ask for (their package header
// util/platform_util.h). Architecture 2201; vector registers of that name come with later architectures.
#pragma once
#include <cstdint>

namespace Ops {
namespace Base {

// Bytes of a block of UB.
template <typename Context>
uint32_t GetUbBlockSize(const Context*) {
  return 32;
}
template <typename Context>
uint32_t GetVRegSize(const Context*) {
  return 256;
}

}  // namespace Base
}  // namespace Ops
