// Rope: y = x * cos + rotate_half(x) * sin for x[T, N, D], cos and sin[T, D]. Definition, shape inference and tiling.
#include "rope_tiling.h"

#include <algorithm>
#include <cstdio>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t UB_RESERVED = 1024;
constexpr uint64_t TILE_LENGTH = 4096;  // most elements of one item, when a head is shorter
constexpr uint32_t BUFFER_NUM = 2;      // double buffering

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
static uint64_t CeilAlign(uint64_t a, uint64_t b) { return CeilDiv(a, b) * b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const gert::Shape& x = context->GetInputShape(0)->GetStorageShape();
  const gert::Shape& cos = context->GetInputShape(1)->GetStorageShape();
  const gert::Shape& sin = context->GetInputShape(2)->GetStorageShape();
  if (x.GetDimNum() != 3 || cos.GetDimNum() != 2 || sin.GetDimNum() != 2 || x.GetDim(2) == 0 || x.GetDim(2) % 2 != 0) {
    std::printf("Rope: x needs the axes [T, N, D] with an even D, cos and sin [T, D].\n");
    return ge::GRAPH_FAILED;
  }
  const uint64_t tokenNum = x.GetDim(0), headNum = x.GetDim(1), headDim = x.GetDim(2);
  for (const gert::Shape* table : {&cos, &sin}) {
    if (table->GetDim(0) != x.GetDim(0) || table->GetDim(1) != x.GetDim(2)) {
      std::printf("Rope: x is [%lu, %lu, %lu], so cos and sin have to be [%lu, %lu].\n", tokenNum, headNum, headDim,
                  tokenNum, headDim);
      return ge::GRAPH_FAILED;
    }
  }

  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t ubSize = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0) {
    return ge::GRAPH_FAILED;
  }

  // Heads of one item: x and y with their buffers and as float; cos and sin with their buffers and as float; two halves
  // of a head for products.
  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  const uint64_t alignedHalfDim = CeilAlign(headDim / 2, BLOCK_BYTES / typeSize);
  const uint64_t alignedDim = 2 * alignedHalfDim;
  const uint64_t headBytes = alignedDim * (2 * BUFFER_NUM * typeSize + 2 * sizeof(float));
  const uint64_t tableBytes = alignedDim * (2 * BUFFER_NUM * typeSize + 3 * sizeof(float)) + UB_RESERVED;
  if (headBytes + tableBytes > ubSize) {
    std::printf("Rope: a head of %lu elements needs %lu bytes of UB, there are %lu.\n", headDim, headBytes + tableBytes,
                ubSize);
    return ge::GRAPH_FAILED;
  }
  uint64_t headsPerItem = std::max<uint64_t>(1, TILE_LENGTH / alignedDim);
  headsPerItem = std::min(headsPerItem, (ubSize - tableBytes) / headBytes);
  headsPerItem = std::max<uint64_t>(1, std::min(headsPerItem, headNum));

  const uint64_t itemsPerToken = CeilDiv(headNum, headsPerItem);
  const uint64_t itemNum = tokenNum * itemsPerToken;
  coreNum = std::max<uint64_t>(1, std::min(coreNum, itemNum));
  const uint64_t smallCoreItems = itemNum / coreNum;
  const uint64_t bigCoreNum = itemNum % coreNum;

  RopeTilingData tiling;
  tiling.set_bigCoreNum(bigCoreNum);
  tiling.set_smallCoreItems(smallCoreItems);
  tiling.set_headNum(static_cast<uint32_t>(headNum));
  tiling.set_headsPerItem(static_cast<uint32_t>(headsPerItem));
  tiling.set_itemsPerToken(static_cast<uint32_t>(itemsPerToken));
  tiling.set_halfDim(static_cast<uint32_t>(headDim / 2));
  tiling.set_alignedHalfDim(static_cast<uint32_t>(alignedHalfDim));
  tiling.set_bufferNum(BUFFER_NUM);
  context->SetBlockDim(static_cast<uint32_t>(coreNum));
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  size_t* workspace = context->GetWorkspaceSizes(1);
  workspace[0] = 0;
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
class Rope : public OpDef {
 public:
  explicit Rope(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("cos")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("sin")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(Rope);
}  // namespace ops
