// MaskedFill: y = mask ? value : x. Definition, shape inference and tiling.
#include "masked_fill_tiling.h"

#include <algorithm>
#include <cstdio>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t ALIGN_LENGTH = 128;       // halves of one repeat: a comparison takes whole repeats
constexpr uint64_t SELECT_BYTES = 8 * 1024;  // UB that Select needs for itself
constexpr uint64_t TILE_LENGTH = 4096;       // elements of one loop
constexpr uint32_t BUFFER_NUM = 2;           // double buffering

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const uint64_t totalLength = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  const uint64_t maskLength = context->GetInputShape(1)->GetStorageShape().GetShapeSize();
  if (totalLength != maskLength) {
    std::printf("MaskedFill: x has %lu elements and mask %lu; both need the same shape.\n", totalLength, maskLength);
    return ge::GRAPH_FAILED;
  }

  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t ubSize = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0 || ubSize <= SELECT_BYTES) {
    return ge::GRAPH_FAILED;
  }

  const uint64_t coreLength =
      std::max<uint64_t>(1, CeilDiv(CeilDiv(totalLength, ALIGN_LENGTH), coreNum)) * ALIGN_LENGTH;
  coreNum = std::max<uint64_t>(1, CeilDiv(totalLength, coreLength));

  // x, y and the mask with their buffers; the mask as half and as bits.
  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  const uint64_t elementBytes = BUFFER_NUM * (2 * typeSize + 1) + sizeof(uint16_t) + 1;
  const uint64_t ubTileLength = (ubSize - SELECT_BYTES) / elementBytes / ALIGN_LENGTH * ALIGN_LENGTH;
  const uint64_t tileLength = std::min(TILE_LENGTH, ubTileLength);

  MaskedFillTilingData tiling;
  tiling.set_totalLength(totalLength);
  tiling.set_coreLength(coreLength);
  tiling.set_tileLength(static_cast<uint32_t>(tileLength));
  tiling.set_bufferNum(BUFFER_NUM);
  tiling.set_value(*context->GetAttrs()->GetFloat(0));
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
class MaskedFill : public OpDef {
 public:
  explicit MaskedFill(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("mask").ParamType(REQUIRED).DataType({ge::DT_BOOL, ge::DT_BOOL}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("value").AttrType(OPTIONAL).Float(0.0);
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(MaskedFill);
}  // namespace ops
