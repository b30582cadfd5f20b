// MatmulGelu: c = gelu(a x b). Definition, shape inference and tiling.
#include "matmul_gelu_tiling.h"

#include <algorithm>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr int32_t BASE_M = 128;  // the vector cores need 10 bytes of the Unified Buffer for each element of a block
constexpr int32_t BASE_N = 128;
constexpr int32_t BASE_K = -1;        // as MultiCoreMatmulTiling chooses
constexpr uint32_t VECTORS = 2;       // vector cores of a group
constexpr int64_t MAX_PITCH = 65535;  // elements from row to row that a copy to L1 can take
constexpr int32_t SIDE = 16;          // of a tile

static int32_t Align(int32_t length) { return (length + SIDE - 1) / SIDE * SIDE; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const uint32_t coreNum = platform.GetCoreNumAiv();
  const auto& aShape = context->GetInputShape(0)->GetStorageShape();
  const auto& bShape = context->GetInputShape(1)->GetStorageShape();
  if (coreNum == 0 || aShape.GetDimNum() != 2 || bShape.GetDimNum() != 2 || aShape.GetDim(1) != bShape.GetDim(0)) {
    return ge::GRAPH_FAILED;
  }
  const int64_t m = aShape.GetDim(0);
  const int64_t k = aShape.GetDim(1);
  const int64_t n = bShape.GetDim(1);
  if (m == 0 || k == 0 || n == 0 || m > INT32_MAX || k > MAX_PITCH || n > MAX_PITCH) {
    return ge::GRAPH_FAILED;
  }

  const auto type = context->GetInputDesc(0)->GetDataType() == ge::DT_BF16 ? matmul_tiling::DataType::DT_BF16
                                                                           : matmul_tiling::DataType::DT_FLOAT16;
  matmul_tiling::MultiCoreMatmulTiling cube(platform);
  cube.SetDim(coreNum);
  cube.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, type);
  cube.SetBType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, type);
  cube.SetCType(matmul_tiling::TPosition::VECIN, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
  cube.SetShape(m, n, k);
  cube.SetOrgShape(m, n, k);
  cube.SetFixSplit(std::min(BASE_M, Align(m)), std::min(BASE_N, Align(n)), BASE_K);
  cube.SetBufferSpace(-1, -1, -1);
  MatmulGeluTilingData tiling;
  if (cube.GetTiling(tiling.cube) == -1) {
    return ge::GRAPH_FAILED;
  }

  context->SetBlockDim((tiling.cube.get_usedCoreNum() + VECTORS - 1) / VECTORS);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  size_t* workspace = context->GetWorkspaceSizes(1);
  workspace[0] = platform.GetLibApiWorkSpaceSize();
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  const gert::Shape* a = context->GetInputShape(0);
  const gert::Shape* b = context->GetInputShape(1);
  gert::Shape* c = context->GetOutputShape(0);
  if (a->GetDimNum() != 2 || b->GetDimNum() != 2) {
    return GRAPH_FAILED;
  }
  c->SetDimNum(2);
  c->SetDim(0, a->GetDim(0));
  c->SetDim(1, b->GetDim(1));
  return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class MatmulGelu : public OpDef {
 public:
  explicit MatmulGelu(const char* name) : OpDef(name) {
    this->Input("a").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("b").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("c")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(MatmulGelu);
}  // namespace ops
