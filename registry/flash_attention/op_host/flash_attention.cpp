// FlashAttention: o = softmax(q k^T scale) v. Definition, shape inference and tiling.
#include "flash_attention_tiling.h"

#include <algorithm>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint32_t BLOCK_Q = 128;
constexpr uint32_t BLOCK_K = 128;
constexpr uint32_t SIDE = 16;        // of a tile
constexpr uint32_t MAX_DEPTH = 128;  // of a head: tiles of all of it lie in L0
constexpr uint32_t SLOTS = 2;        // of scores and weights
constexpr uint32_t VECTORS = 2;      // vector cores of a group

static uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
static uint32_t Align(uint32_t a, uint32_t b) { return CeilDiv(a, b) * b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const uint32_t coreNum = std::min(platform.GetCoreNumAic(), platform.GetCoreNumAiv() / VECTORS);
  const auto& q = context->GetInputShape(0)->GetStorageShape();
  const auto& k = context->GetInputShape(1)->GetStorageShape();
  const auto& v = context->GetInputShape(2)->GetStorageShape();
  if (coreNum == 0 || q.GetDimNum() != 3 || k.GetDimNum() != 3 || !(k == v) || q.GetDim(0) != k.GetDim(0) ||
      q.GetDim(2) != k.GetDim(2)) {
    return ge::GRAPH_FAILED;
  }
  const uint32_t heads = q.GetDim(0);
  const uint32_t queries = q.GetDim(1);
  const uint32_t keys = k.GetDim(1);
  const uint32_t depth = q.GetDim(2);
  const float scale = *context->GetAttrs()->GetFloat(0);
  const bool causal = *context->GetAttrs()->GetBool(1);
  if (heads == 0 || queries == 0 || keys == 0 || depth == 0 || depth > MAX_DEPTH || !(scale > 0) ||
      (causal && queries > keys)) {
    return ge::GRAPH_FAILED;
  }

  const uint32_t blockQ = std::min(BLOCK_Q, Align(queries, SIDE));
  const uint32_t blockK = BLOCK_K;
  const uint32_t groups = std::min(coreNum, heads * CeilDiv(queries, blockQ));

  FlashAttentionTilingData tiling;
  tiling.set_heads(heads);
  tiling.set_queries(queries);
  tiling.set_keys(keys);
  tiling.set_depth(depth);
  tiling.set_blockQ(blockQ);
  tiling.set_blockK(blockK);
  tiling.set_scale(scale);
  tiling.set_causal(causal);
  context->SetBlockDim(groups);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  const size_t scores = SLOTS * blockQ * blockK * (sizeof(float) + sizeof(uint16_t));
  const size_t products = blockQ * depth * sizeof(float);
  size_t* workspace = context->GetWorkspaceSizes(1);
  workspace[0] = platform.GetLibApiWorkSpaceSize() + groups * (scores + products);
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class FlashAttention : public OpDef {
 public:
  explicit FlashAttention(const char* name) : OpDef(name) {
    this->Input("q").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("k").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("v").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("o")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("scale").AttrType(OPTIONAL).Float(1.0);
    this->Attr("causal").AttrType(OPTIONAL).Bool(false);
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(FlashAttention);
}  // namespace ops
