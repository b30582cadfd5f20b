// ForeachMulScalar: y[i] = x[i] * scalar for every tensor of a list. Definition, shape inference and tiling.
#include "foreach_mul_scalar_tiling.h"

#include <algorithm>
#include <cstdio>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t UB_RESERVED = 4096;  // tiling data and what the compiler needs
constexpr uint32_t BUFFER_NUM = 2;      // double buffering

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const ge::DataType dataType = context->GetDynamicInputDesc(0, 0)->GetDataType();
  const uint64_t typeSize = ge::GetSizeByDataType(dataType);
  const uint64_t blockLength = BLOCK_BYTES / typeSize;

  uint64_t tensorLength[MAX_TENSOR_NUM] = {};
  uint64_t blockNum = 0;
  uint32_t tensorNum = 0;
  for (;; tensorNum++) {
    const gert::StorageShape* shape = context->GetDynamicInputShape(0, tensorNum);
    if (shape == nullptr) {
      break;
    }
    if (tensorNum == MAX_TENSOR_NUM) {
      std::printf("ForeachMulScalar: x has more than %u tensors; split the list.\n", MAX_TENSOR_NUM);
      return ge::GRAPH_FAILED;
    }
    tensorLength[tensorNum] = shape->GetStorageShape().GetShapeSize();
    blockNum += (tensorLength[tensorNum] + blockLength - 1) / blockLength;
  }

  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t ubSize = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0 || ubSize <= UB_RESERVED) {
    return ge::GRAPH_FAILED;
  }
  coreNum = std::max<uint64_t>(1, std::min(coreNum, blockNum));
  const uint64_t smallCoreBlocks = blockNum / coreNum;
  const uint64_t bigCoreNum = blockNum % coreNum;

  // x and y with their buffers; half goes through a float tile.
  const uint64_t floatBytes = dataType == ge::DT_FLOAT ? 0 : sizeof(float);
  const uint64_t elementBytes = 2 * BUFFER_NUM * typeSize + floatBytes;
  const uint64_t tileLength = (ubSize - UB_RESERVED) / elementBytes / blockLength * blockLength;

  ForeachMulScalarTilingData tiling;
  tiling.set_bigCoreNum(bigCoreNum);
  tiling.set_smallCoreBlocks(smallCoreBlocks);
  tiling.set_tensorNum(tensorNum);
  tiling.set_tileLength(static_cast<uint32_t>(tileLength));
  tiling.set_bufferNum(BUFFER_NUM);
  tiling.set_tensorLength(tensorLength);
  context->SetBlockDim(static_cast<uint32_t>(coreNum));
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  size_t* workspace = context->GetWorkspaceSizes(1);
  workspace[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
// The list y has as many tensors as the list x, which comes first among the inputs.
static graphStatus InferShape(gert::InferShapeContext* context) {
  const size_t tensorNum = context->GetComputeNodeOutputNum();
  for (size_t i = 0; i < tensorNum; i++) {
    *context->GetOutputShape(i) = *context->GetInputShape(i);
  }
  return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  const size_t tensorNum = context->GetComputeNodeOutputNum();
  for (size_t i = 0; i < tensorNum; i++) {
    context->SetOutputDataType(i, context->GetInputDataType(i));
  }
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class ForeachMulScalar : public OpDef {
 public:
  explicit ForeachMulScalar(const char* name) : OpDef(name) {
    this->Input("x").ParamType(DYNAMIC).DataType({ge::DT_FLOAT16, ge::DT_FLOAT}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("scalar")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(DYNAMIC)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(ForeachMulScalar);
}  // namespace ops
