// The class that tiling programs of CANN's open operator repositories fill in where one operator has several of them
// (opbase, op_common/op_host/tiling_base_class.h): DoTiling asks its parts in a fixed order.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "exe_graph/runtime/tiling_context.h"
#include "log/log.h"
#include "platform/soc_spec.h"
#include "tiling/platform/platform_ascendc.h"

#ifndef ASCENDC_EXTERN_C
#define ASCENDC_EXTERN_C
#endif

namespace Ops {
namespace Base {

struct AiCoreParams {
  uint64_t ubSize = 0;
  uint64_t numBlocks = 0;
  uint64_t aicNum = 0;
  uint64_t l1Size = 0;
  uint64_t l0aSize = 0;
  uint64_t l0bSize = 0;
  uint64_t l0cSize = 0;
};

struct CompileInfoCommon {
  uint32_t aivNum;
  uint32_t aicNum;
  uint64_t ubSize;
  uint64_t l1Size;
  uint64_t l0aSize;
  uint64_t l0bSize;
  uint64_t l0cSize;
  uint64_t l2CacheSize;
  int64_t coreNum;
  int32_t socVersion;
  uint32_t rsvd;
};

class TilingBaseClass {
 public:
  explicit TilingBaseClass(gert::TilingContext* context) : context_(context) {}
  virtual ~TilingBaseClass() = default;

  // GRAPH_PARAM_INVALID: this class doesn't take the case, another one may.
  ge::graphStatus DoTiling() {
    if (context_ == nullptr) return ge::GRAPH_FAILED;
    ge::graphStatus status = GetShapeAttrsInfo();
    if (status == ge::GRAPH_SUCCESS) status = GetPlatformInfo();
    if (status == ge::GRAPH_SUCCESS && !IsCapable()) return ge::GRAPH_PARAM_INVALID;
    if (status == ge::GRAPH_SUCCESS) status = DoOpTiling();
    if (status == ge::GRAPH_SUCCESS) status = DoLibApiTiling();
    if (status == ge::GRAPH_SUCCESS) status = GetWorkspaceSize();
    if (status == ge::GRAPH_SUCCESS) status = PostTiling();
    if (status != ge::GRAPH_SUCCESS) return status;
    context_->SetTilingKey(GetTilingKey());
    DumpTilingInfo();
    return ge::GRAPH_SUCCESS;
  }

  virtual void Reset(gert::TilingContext* context) { context_ = context; }

 protected:
  virtual bool IsCapable() = 0;
  virtual ge::graphStatus GetPlatformInfo() = 0;
  virtual ge::graphStatus GetShapeAttrsInfo() = 0;
  virtual ge::graphStatus DoOpTiling() = 0;
  virtual ge::graphStatus DoLibApiTiling() = 0;
  [[nodiscard]] virtual uint64_t GetTilingKey() const = 0;
  virtual ge::graphStatus GetWorkspaceSize() = 0;
  virtual ge::graphStatus PostTiling() = 0;
  virtual void DumpTilingInfo() {}

  // Blocks of a launch on cube cores for slices that go to vector cores.
  static uint32_t CalcTschBlockDim(uint32_t slices, uint32_t cube_cores, uint32_t vector_cores) {
    if (cube_cores == 0 || vector_cores == 0 || cube_cores > vector_cores) return slices;
    const uint32_t ratio = vector_cores / cube_cores;
    return (slices + ratio - 1) / ratio;
  }

  // Texts for logs, which here say less than CANN's.
  template <typename T>
  [[nodiscard]] std::string GetShapeDebugStr(const T& shape) const {
    return ToString(shape);
  }
  [[nodiscard]] std::string GetTilingContextDebugStr() { return GetOpInfo(context_); }
  [[nodiscard]] std::string GetTilingDataDebugStr() const { return GetOpInfo(context_); }

  gert::TilingContext* context_ = nullptr;
  std::unique_ptr<platform_ascendc::PlatformAscendC> ascendcPlatform_{nullptr};
  uint32_t blockDim_{0};
  uint64_t workspaceSize_{0};
  uint64_t tilingKey_{0};
  AiCoreParams aicoreParams_;
};

}  // namespace Base
}  // namespace Ops
