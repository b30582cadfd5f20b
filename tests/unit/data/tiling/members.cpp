// The same in a class: compile info, members, an out parameter, and a helper of another class.
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(MembersTilingData)
  TILING_DATA_FIELD_DEF(int64_t, tileLen);
  TILING_DATA_FIELD_DEF(int64_t, usedCores);
END_TILING_DATA_DEF;

struct CompileInfo {
  int64_t vectorCores = 0;
  uint64_t localBytes = 0;
};

class Calculator {
 public:
  explicit Calculator(gert::TilingContext* context) : context_(context) {}
  ge::graphStatus Run();

 private:
  bool Split(uint64_t localBytes, int64_t& tileLen);
  gert::TilingContext* context_;
  MembersTilingData tiling_;
  int64_t total_ = 0;
  int64_t cores_ = 1;
};

bool Calculator::Split(uint64_t localBytes, int64_t& tileLen) {
  tileLen = localBytes / 6 / 256 * 256;
  return tileLen > 0;
}

ge::graphStatus Calculator::Run() {
  auto info = reinterpret_cast<const CompileInfo*>(context_->GetCompileInfo());
  total_ = context_->GetInputShape(0)->GetStorageShape().GetShapeSize();
  cores_ = info->vectorCores;
  int64_t tileLen = 0;
  if (!Split(info->localBytes, tileLen)) {
    return ge::GRAPH_FAILED;
  }
  if (total_ / tileLen < cores_) {
    cores_ = total_ / tileLen + 1;
  }
  tiling_.set_tileLen(tileLen);
  tiling_.set_usedCores(cores_);
  context_->SetBlockDim(tiling_.get_usedCores());
  tiling_.SaveToBuffer(context_->GetRawTilingData()->GetData(), context_->GetRawTilingData()->GetCapacity());
  return ge::GRAPH_SUCCESS;
}

static ge::graphStatus Tiling4Members(gert::TilingContext* context) {
  Calculator calculator(context);
  return calculator.Run();
}

static ge::graphStatus TilingPrepare(gert::TilingParseContext* context) {
  auto info = context->GetCompiledInfo<CompileInfo>();
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  info->vectorCores = platform.GetCoreNumAiv();
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, info->localBytes);
  return ge::GRAPH_SUCCESS;
}

IMPL_OP_OPTILING(Members).Tiling(Tiling4Members).TilingParse<CompileInfo>(TilingPrepare);
}  // namespace optiling
