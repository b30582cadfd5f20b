// Silu: y = x / (1 + exp(-x)). Definition, shape inference and tiling.
#include "silu_tiling.h"

#include <algorithm>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t UB_RESERVED = 8 * 1024;  // left free for the compiler
constexpr uint64_t FLOAT_BUFFERS = 2;       // x as float, denominator
constexpr uint32_t BUFFER_NUM = 2;          // double buffering

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t ubSize = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0 || ubSize <= UB_RESERVED) {
    return ge::GRAPH_FAILED;
  }

  const uint64_t totalLength = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  const uint64_t blockLength = BLOCK_BYTES / typeSize;

  // As long a tile as UB holds: x and y with all their buffers, and the float temporaries.
  const uint64_t elementBytes = 2 * BUFFER_NUM * typeSize + FLOAT_BUFFERS * sizeof(float);
  const uint64_t tileLength = (ubSize - UB_RESERVED) / elementBytes / blockLength * blockLength;

  const uint64_t blockNum = std::max<uint64_t>(1, CeilDiv(totalLength, blockLength));
  const uint64_t coreLength = CeilDiv(blockNum, coreNum) * blockLength;
  coreNum = std::max<uint64_t>(1, CeilDiv(totalLength, coreLength));

  SiluTilingData tiling;
  tiling.set_totalLength(totalLength);
  tiling.set_coreLength(coreLength);
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
class Silu : public OpDef {
 public:
  explicit Silu(const char* name) : OpDef(name) {
    this->Input("x")
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
OP_ADD(Silu);
}  // namespace ops
