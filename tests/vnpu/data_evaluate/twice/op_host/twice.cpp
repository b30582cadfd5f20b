// y = 2 * x: the operator that the tests of the evaluation break in every way.
#include "twice_tiling.h"

#include <cstdio>
#include <cstdlib>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint32_t TILE = 1024;
constexpr uint32_t BLOCK_DIM = 4;

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const uint32_t total = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  if (total == 0) {
    std::fprintf(stderr, "Twice: x is empty.\n");
    return ge::GRAPH_FAILED;
  }
  TwiceTilingData tiling;
  tiling.set_total(total);
  tiling.set_perCore((total + BLOCK_DIM - 1) / BLOCK_DIM + 63 - ((total + BLOCK_DIM - 1) / BLOCK_DIM + 63) % 64);
  tiling.set_tile(TILE);
  context->SetBlockDim(BLOCK_DIM);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->GetWorkspaceSizes(1)[0] = 64;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class Twice : public OpDef {
 public:
  explicit Twice(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
  }
};
OP_ADD(Twice);
}  // namespace ops
