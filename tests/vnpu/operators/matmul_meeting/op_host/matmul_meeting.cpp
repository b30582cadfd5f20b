// MatmulMeeting: y = leaky_relu(a x b), on groups of one cube core and two vector cores.
#include "matmul_meeting_tiling.h"

#include <algorithm>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint32_t ROWS = 32;  // of a block, as in the kernel

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const auto& a = context->GetInputShape(0)->GetStorageShape();
  const auto& b = context->GetInputShape(1)->GetStorageShape();
  const uint32_t blocks = (a.GetDim(0) + ROWS - 1) / ROWS;
  const uint32_t cores = std::min(platform.GetCoreNumAic(), platform.GetCoreNumAiv() / 2);
  const uint32_t groups = std::min(cores, blocks);
  MatmulMeetingTilingData tiling;
  tiling.set_m(a.GetDim(0));
  tiling.set_n(b.GetDim(1));
  tiling.set_k(a.GetDim(1));
  tiling.set_rounds((blocks + groups - 1) / groups);
  context->SetBlockDim(groups);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  size_t* workspace = context->GetWorkspaceSizes(1);
  workspace[0] = platform.GetLibApiWorkSpaceSize() + groups * ROWS * b.GetDim(1) * sizeof(float);
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class MatmulMeeting : public OpDef {
 public:
  explicit MatmulMeeting(const char* name) : OpDef(name) {
    this->Input("a").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    this->Input("b").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
  }
};
OP_ADD(MatmulMeeting);
}  // namespace ops
