// Facts of the platform that tiling programs of CANN's open operator repositories ask for (opbase,
// op_common/op_host/util/platform_util.h). Architecture 2201; vector registers of that name, and what the others say,
// come with later architectures.
#pragma once
#include <cstdint>

#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "log/log.h"  // sources that include nothing else of the package use its checks
#include "tiling/platform/platform_ascendc.h"

namespace Ops {
namespace Base {

template <typename Context>
uint32_t GetAivCoreNum(const Context* context) {
  return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
}
template <typename Context>
uint32_t GetAicCoreNum(const Context* context) {
  return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAic();
}
template <typename Context>
uint32_t GetUbSize(const Context* context) {
  uint64_t bytes = 0;
  platform_ascendc::PlatformAscendC(context->GetPlatformInfo())
      .GetCoreMemSize(platform_ascendc::CoreMemType::UB, bytes);
  return static_cast<uint32_t>(bytes);
}
template <typename Context>
uint32_t GetWorkspaceSize(const Context* context) {
  return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetLibApiWorkSpaceSize();
}

// Bytes of a block of UB.
template <typename Context>
uint32_t GetUbBlockSize(const Context*) {
  return 32;
}
template <typename Context>
uint32_t GetVRegSize(const Context*) {
  return 256;
}
template <typename Context>
uint32_t GetCacheLineSize(const Context*) {
  return 256;
}

}  // namespace Base
}  // namespace Ops
