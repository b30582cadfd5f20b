// ReduceSumLast: y = sum of x over the last axis, added up in float. Definition, shape inference and tiling.
#include "reduce_sum_last_tiling.h"

#include <algorithm>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t FLOATS_PER_REPEAT = 64;
constexpr uint64_t TILE_LENGTH = 4096;   // most columns read with one copy
constexpr uint64_t ROWS_PER_LOOP = 128;  // most sums written with one copy
constexpr uint32_t BUFFER_NUM = 2;       // double buffering

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
static uint64_t CeilAlign(uint64_t a, uint64_t b) { return CeilDiv(a, b) * b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
  const size_t dimNum = shape.GetDimNum();
  const uint64_t rowLength = dimNum == 0 ? 1 : shape.GetDim(dimNum - 1);
  if (rowLength == 0) {
    return ge::GRAPH_FAILED;
  }
  const uint64_t rowNum = shape.GetShapeSize() / rowLength;

  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0) {
    return ge::GRAPH_FAILED;
  }
  // Every core writes whole blocks of y where there are enough rows.
  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  const uint64_t blockLength = BLOCK_BYTES / typeSize;
  const uint64_t rowsPerCore = CeilAlign(std::max<uint64_t>(1, CeilDiv(rowNum, coreNum)), blockLength);
  coreNum = std::max<uint64_t>(1, CeilDiv(rowNum, rowsPerCore));

  const uint64_t tileCols = std::min(CeilAlign(rowLength, blockLength), TILE_LENGTH);
  const uint64_t rowsPerLoop = std::min(rowsPerCore, ROWS_PER_LOOP);

  ReduceSumLastTilingData tiling;
  tiling.set_rowNum(rowNum);
  tiling.set_rowsPerCore(rowsPerCore);
  tiling.set_rowLength(rowLength);
  tiling.set_rowsPerLoop(static_cast<uint32_t>(rowsPerLoop));
  tiling.set_tileCols(static_cast<uint32_t>(tileCols));
  tiling.set_reduceBytes(
      static_cast<uint32_t>(CeilAlign(CeilDiv(tileCols, FLOATS_PER_REPEAT) * sizeof(float), BLOCK_BYTES)));
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
  const gert::Shape* x = context->GetInputShape(0);
  gert::Shape* y = context->GetOutputShape(0);
  const size_t dimNum = x->GetDimNum();
  if (dimNum == 0) {
    return GRAPH_FAILED;
  }
  y->SetDimNum(dimNum - 1);
  for (size_t i = 0; i + 1 < dimNum; i++) {
    y->SetDim(i, x->GetDim(i));
  }
  return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class ReduceSumLast : public OpDef {
 public:
  explicit ReduceSumLast(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(ReduceSumLast);
}  // namespace ops
