// GroupedMatmul: rows of a times the matrix of their expert. Definition, shape inference and tiling.
#include "grouped_matmul_tiling.h"

#include <algorithm>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint32_t BASE_M = 128;
constexpr uint32_t BASE_N = 256;
constexpr uint32_t BASE_K = 64;
constexpr uint32_t STEP_K = 4;
constexpr uint32_t L1_BUFFERS = 2;  // double buffering
constexpr uint32_t L0_BUFFERS = 2;
constexpr uint32_t SIDE = 16;          // of a tile of C, and rows of one of an operand
constexpr uint32_t MAX_PITCH = 65535;  // elements from row to row that a copy to L1 can take
constexpr uint64_t L0C_BYTES = 128 * 1024;

static uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
static uint32_t Align(uint32_t a, uint32_t b) { return CeilDiv(a, b) * b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const uint32_t coreNum = platform.GetCoreNumAic();
  const auto& aShape = context->GetInputShape(0)->GetStorageShape();
  const auto& bShape = context->GetInputShape(1)->GetStorageShape();
  const auto& countsShape = context->GetInputShape(2)->GetStorageShape();
  if (coreNum == 0 || aShape.GetDimNum() != 2 || bShape.GetDimNum() != 3 || aShape.GetDim(1) != bShape.GetDim(1) ||
      countsShape.GetShapeSize() != bShape.GetDim(0)) {
    return ge::GRAPH_FAILED;
  }
  const uint32_t m = aShape.GetDim(0);
  const uint32_t k = aShape.GetDim(1);
  const uint32_t groups = bShape.GetDim(0);
  const uint32_t n = bShape.GetDim(2);
  if (m == 0 || k == 0 || n == 0 || groups == 0 || k > MAX_PITCH || n > MAX_PITCH) {
    return ge::GRAPH_FAILED;
  }

  const uint32_t baseM = std::min(BASE_M, Align(m, SIDE));
  const uint32_t baseN = std::min(BASE_N, Align(n, SIDE));
  const uint32_t baseK = std::min(BASE_K, Align(k, SIDE));
  const uint32_t stepK = std::min(STEP_K, CeilDiv(k, baseK));
  // How many rows a group has only the kernel knows: at most every group has a block that is not full.
  const uint32_t mostBlocks = std::min(m, CeilDiv(m, baseM) + groups - 1) * CeilDiv(n, baseN);

  GroupedMatmulTilingData tiling;
  tiling.set_groups(groups);
  tiling.set_m(m);
  tiling.set_n(n);
  tiling.set_k(k);
  tiling.set_baseM(baseM);
  tiling.set_baseN(baseN);
  tiling.set_baseK(baseK);
  tiling.set_stepK(stepK);
  tiling.set_l1Buffers(L1_BUFFERS);
  tiling.set_l0Buffers(L0_BUFFERS);
  tiling.set_l0cBuffers(2ULL * baseM * baseN * sizeof(float) <= L0C_BYTES ? 2 : 1);
  context->SetBlockDim(std::min(coreNum, mostBlocks));
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  size_t* workspace = context->GetWorkspaceSizes(1);
  workspace[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  const gert::Shape* a = context->GetInputShape(0);
  const gert::Shape* b = context->GetInputShape(1);
  gert::Shape* c = context->GetOutputShape(0);
  if (a->GetDimNum() != 2 || b->GetDimNum() != 3) {
    return GRAPH_FAILED;
  }
  c->SetDimNum(2);
  c->SetDim(0, a->GetDim(0));
  c->SetDim(1, b->GetDim(2));
  return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class GroupedMatmul : public OpDef {
 public:
  explicit GroupedMatmul(const char* name) : OpDef(name) {
    this->Input("a").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("b").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("counts")
        .ParamType(REQUIRED)
        .DataType({ge::DT_INT64, ge::DT_INT64})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("c")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(GroupedMatmul);
}  // namespace ops
