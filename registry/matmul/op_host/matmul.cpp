// Matmul: c = a x b + bias. Definition, shape inference and tiling.
#include "matmul_tiling.h"

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

// How many cores share m, so that the core with the most base blocks has as few as possible; the rest of them share n.
static uint32_t CoresAlongM(uint32_t mBlocks, uint32_t nBlocks, uint32_t coreNum) {
  uint32_t best = 1, fewest = UINT32_MAX;
  for (uint32_t cores = 1; cores <= std::min(coreNum, mBlocks); cores++) {
    const uint32_t alongN = std::min(coreNum / cores, nBlocks);
    const uint32_t blocks = CeilDiv(mBlocks, cores) * CeilDiv(nBlocks, alongN);
    if (blocks < fewest) {
      fewest = blocks;
      best = cores;
    }
  }
  return best;
}

struct Sizes {
  uint32_t m = 0, k = 0, n = 0;
};

// What is to be multiplied; false where the shapes don't go together or a row is longer than a copy can step over.
static bool SizesOf(gert::TilingContext* context, bool turned, Sizes& sizes) {
  const auto& aShape = context->GetInputShape(0)->GetStorageShape();
  const auto& bShape = context->GetInputShape(1)->GetStorageShape();
  const auto* biasShape = context->GetOptionalInputShape(2);
  if (aShape.GetDimNum() != 2 || bShape.GetDimNum() != 2 || aShape.GetDim(1) != bShape.GetDim(turned ? 1 : 0)) {
    return false;
  }
  sizes.m = aShape.GetDim(0);
  sizes.k = aShape.GetDim(1);
  sizes.n = bShape.GetDim(turned ? 0 : 1);
  if (biasShape != nullptr && biasShape->GetStorageShape().GetShapeSize() != sizes.n) {
    return false;
  }
  return sizes.m != 0 && sizes.k != 0 && sizes.n != 0 && sizes.k <= MAX_PITCH && sizes.n <= MAX_PITCH;
}

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const uint32_t coreNum = platform.GetCoreNumAic();
  const bool turned = *context->GetAttrs()->GetBool(0);
  const bool biased = context->GetOptionalInputShape(2) != nullptr;
  Sizes sizes;
  if (coreNum == 0 || !SizesOf(context, turned, sizes)) {
    return ge::GRAPH_FAILED;
  }
  const uint32_t m = sizes.m;
  const uint32_t k = sizes.k;
  const uint32_t n = sizes.n;

  const uint32_t baseM = std::min(BASE_M, Align(m, SIDE));
  const uint32_t baseN = std::min(BASE_N, Align(n, SIDE));
  const uint32_t baseK = std::min(BASE_K, Align(k, SIDE));
  const uint32_t stepK = std::min(STEP_K, CeilDiv(k, baseK));
  const uint32_t mBlocks = CeilDiv(m, baseM);
  const uint32_t nBlocks = CeilDiv(n, baseN);
  const uint32_t alongM = CoresAlongM(mBlocks, nBlocks, coreNum);
  const uint32_t singleM = CeilDiv(mBlocks, alongM) * baseM;
  const uint32_t singleN = CeilDiv(nBlocks, std::min(coreNum / alongM, nBlocks)) * baseN;

  MatmulTilingData tiling;
  tiling.set_m(m);
  tiling.set_n(n);
  tiling.set_k(k);
  tiling.set_singleM(singleM);
  tiling.set_singleN(singleN);
  tiling.set_baseM(baseM);
  tiling.set_baseN(baseN);
  tiling.set_baseK(baseK);
  tiling.set_stepK(stepK);
  tiling.set_l1Buffers(L1_BUFFERS);
  tiling.set_l0Buffers(L0_BUFFERS);
  tiling.set_l0cBuffers(2ULL * baseM * baseN * sizeof(float) <= L0C_BYTES ? 2 : 1);
  context->SetTilingKey((biased ? 1 : 0) + (turned ? 2 : 0));
  context->SetBlockDim(CeilDiv(m, singleM) * CeilDiv(n, singleN));
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
  if (a->GetDimNum() != 2 || b->GetDimNum() != 2) {
    return GRAPH_FAILED;
  }
  const bool turned = *context->GetAttrs()->GetBool(0);
  c->SetDimNum(2);
  c->SetDim(0, a->GetDim(0));
  c->SetDim(1, b->GetDim(turned ? 0 : 1));
  return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class Matmul : public OpDef {
 public:
  explicit Matmul(const char* name) : OpDef(name) {
    this->Input("a").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("b").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("bias")
        .ParamType(OPTIONAL)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("c")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("transpose_b").AttrType(OPTIONAL).Bool(false);
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(Matmul);
}  // namespace ops
