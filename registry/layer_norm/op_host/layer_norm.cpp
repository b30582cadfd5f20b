// LayerNorm: y = (x - mean) / sqrt(var + epsilon) * gamma + beta over the last axis. Definition, shape inference,
// tiling.
#include "layer_norm_tiling.h"

#include <algorithm>
#include <cstdio>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t FLOATS_PER_REPEAT = 64;
constexpr uint64_t UB_RESERVED = 1024;
constexpr uint64_t FLOAT_ROWS = 4;  // gamma, beta, x - mean, its square
constexpr uint32_t BUFFER_NUM = 2;  // double buffering

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
static uint64_t CeilAlign(uint64_t a, uint64_t b) { return CeilDiv(a, b) * b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
  const uint64_t rowLength = context->GetInputShape(1)->GetStorageShape().GetShapeSize();
  const uint64_t betaLength = context->GetInputShape(2)->GetStorageShape().GetShapeSize();
  const size_t dimNum = shape.GetDimNum();
  if (dimNum == 0 || rowLength == 0 || betaLength != rowLength ||
      static_cast<uint64_t>(shape.GetDim(dimNum - 1)) != rowLength) {
    std::printf("LayerNorm: gamma has %lu elements and beta %lu; both need as many as the last axis of x.\n", rowLength,
                betaLength);
    return ge::GRAPH_FAILED;
  }
  const uint64_t rowNum = shape.GetShapeSize() / rowLength;

  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t ubSize = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0) {
    return ge::GRAPH_FAILED;
  }

  // A loop takes one row. x and y have their buffers; gamma and beta are read through the queue of x once.
  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  const uint64_t alignedLength = CeilAlign(rowLength, BLOCK_BYTES / typeSize);
  const uint64_t reduceBytes = CeilAlign(CeilDiv(alignedLength, FLOATS_PER_REPEAT) * sizeof(float), BLOCK_BYTES);
  uint32_t bufferNum = BUFFER_NUM;
  uint64_t needed = alignedLength * (2 * bufferNum * typeSize + FLOAT_ROWS * sizeof(float)) + reduceBytes + UB_RESERVED;
  if (needed > ubSize) {
    bufferNum = 1;
    needed = alignedLength * (2 * bufferNum * typeSize + FLOAT_ROWS * sizeof(float)) + reduceBytes + UB_RESERVED;
  }
  if (needed > ubSize) {
    std::printf("LayerNorm: a row of %lu elements needs %lu bytes of UB, there are %lu.\n", rowLength, needed, ubSize);
    return ge::GRAPH_FAILED;
  }

  const uint64_t rowsPerCore = std::max<uint64_t>(1, CeilDiv(rowNum, coreNum));
  coreNum = std::max<uint64_t>(1, CeilDiv(rowNum, rowsPerCore));

  LayerNormTilingData tiling;
  tiling.set_rowNum(rowNum);
  tiling.set_rowsPerCore(rowsPerCore);
  tiling.set_rowLength(static_cast<uint32_t>(rowLength));
  tiling.set_alignedLength(static_cast<uint32_t>(alignedLength));
  tiling.set_reduceBytes(static_cast<uint32_t>(reduceBytes));
  tiling.set_bufferNum(bufferNum);
  tiling.set_epsilon(*context->GetAttrs()->GetFloat(0));
  tiling.set_averageFactor(1.0f / static_cast<float>(rowLength));
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
class LayerNorm : public OpDef {
 public:
  explicit LayerNorm(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("gamma")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("beta")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("epsilon").AttrType(OPTIONAL).Float(1e-5);
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(LayerNorm);
}  // namespace ops
