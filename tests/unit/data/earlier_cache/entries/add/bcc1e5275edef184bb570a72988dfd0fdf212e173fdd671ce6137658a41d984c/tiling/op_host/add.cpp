// Add: z = x + y. Definition, shape inference and tiling.
#include "add_tiling.h"

#include <algorithm>
#include <cstdio>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 512;
constexpr uint64_t TENSOR_NUM = 3;      // x, y, z in UB
constexpr uint64_t TILE_LENGTH = 2048;  // elements of one loop
constexpr uint32_t BUFFER_NUM = 1;      // double buffering

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const uint64_t totalLength = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  const uint64_t otherLength = context->GetInputShape(1)->GetStorageShape().GetShapeSize();
  if (totalLength != otherLength) {
    std::printf("Add: x has %lu elements and y has %lu; both need the same shape.\n", totalLength, otherLength);
    return ge::GRAPH_FAILED;
  }

  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t ubSize = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0) {
    return ge::GRAPH_FAILED;
  }

  // Whole blocks go to the cores; what is left over after an even split makes the first cores big ones.
  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  const uint64_t blockLength = BLOCK_BYTES / typeSize;
  const uint64_t blockNum = (totalLength + blockLength - 1) / blockLength;
  coreNum = std::max<uint64_t>(1, std::min(coreNum, blockNum));
  const uint64_t smallCoreBlocks = blockNum / coreNum;
  const uint64_t bigCoreNum = blockNum % coreNum;

  const uint64_t ubTileLength = ubSize / (TENSOR_NUM * BUFFER_NUM * typeSize) / blockLength * blockLength;
  const uint64_t tileLength = std::min(TILE_LENGTH, ubTileLength);

  AddTilingData tiling;
  tiling.set_totalLength(totalLength);
  tiling.set_bigCoreNum(bigCoreNum);
  tiling.set_bigCoreLength((smallCoreBlocks + 1) * blockLength);
  tiling.set_smallCoreLength(smallCoreBlocks * blockLength);
  tiling.set_tileLength(static_cast<uint32_t>(tileLength));
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
class Add : public OpDef {
 public:
  explicit Add(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT32})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT32})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("z")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT32})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(Add);
}  // namespace ops
