// Swiglu: y = silu(a) * b, where a and b are the halves of the last axis of x. Definition, shape inference and tiling.
#include "swiglu_tiling.h"

#include <algorithm>
#include <cstdio>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t TILE_LENGTH = 2048;        // elements of one loop: a long row's tile, or several short rows
constexpr uint64_t MAX_ROWS_PER_LOOP = 4095;  // pieces of one DataCopyPad
constexpr uint32_t BUFFER_NUM = 2;            // double buffering

static uint64_t CeilAlign(uint64_t a, uint64_t b) { return (a + b - 1) / b * b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
  const size_t dimNum = shape.GetDimNum();
  const uint64_t inputCols = dimNum == 0 ? 1 : shape.GetDim(dimNum - 1);
  if (inputCols == 0 || inputCols % 2 != 0) {
    std::printf("Swiglu: the last axis of x has %lu elements; it has to be even and not empty.\n", inputCols);
    return ge::GRAPH_FAILED;
  }
  const uint64_t rowLength = inputCols / 2;
  const uint64_t rowNum = shape.GetShapeSize() / inputCols;

  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0) {
    return ge::GRAPH_FAILED;
  }
  coreNum = std::max<uint64_t>(1, std::min(coreNum, rowNum));
  const uint64_t smallCoreRows = rowNum / coreNum;
  const uint64_t bigCoreNum = rowNum % coreNum;

  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  const uint64_t tileCols = std::min(CeilAlign(rowLength, BLOCK_BYTES / typeSize), TILE_LENGTH);
  const uint64_t rowsPerLoop = std::min(std::max<uint64_t>(1, TILE_LENGTH / tileCols), MAX_ROWS_PER_LOOP);

  SwigluTilingData tiling;
  tiling.set_bigCoreNum(bigCoreNum);
  tiling.set_smallCoreRows(smallCoreRows);
  tiling.set_rowLength(static_cast<uint32_t>(rowLength));
  tiling.set_rowsPerLoop(static_cast<uint32_t>(rowsPerLoop));
  tiling.set_tileCols(static_cast<uint32_t>(tileCols));
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
  *y = *x;
  const size_t dimNum = x->GetDimNum();
  if (dimNum == 0) {
    return GRAPH_FAILED;
  }
  y->SetDim(dimNum - 1, x->GetDim(dimNum - 1) / 2);
  return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class Swiglu : public OpDef {
 public:
  explicit Swiglu(const char* name) : OpDef(name) {
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
OP_ADD(Swiglu);
}  // namespace ops
