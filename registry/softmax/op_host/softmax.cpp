// Softmax: y = exp(x - max(x)) / sum(exp(x - max(x))) over the last axis. Definition, shape inference and tiling.
#include "softmax_tiling.h"

#include <algorithm>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t FLOATS_PER_REPEAT = 64;
constexpr uint64_t UB_RESERVED = 1024;
constexpr uint64_t TILE_LENGTH = 4096;  // elements of one loop: several short rows, or a tile of a row too long for UB
constexpr uint32_t BUFFER_NUM = 2;      // double buffering
constexpr uint64_t KEY_WHOLE_ROWS = 0;
constexpr uint64_t KEY_SPLIT_ROWS = 1;

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
static uint64_t CeilAlign(uint64_t a, uint64_t b) { return CeilDiv(a, b) * b; }
// ReduceMax keeps a value and an index of every repeat.
static uint64_t ReduceBytes(uint64_t cols) {
  return CeilAlign(CeilDiv(cols, FLOATS_PER_REPEAT) * 2 * sizeof(float), BLOCK_BYTES);
}

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
  const size_t dimNum = shape.GetDimNum();
  const uint64_t rowLength = dimNum == 0 ? 1 : shape.GetDim(dimNum - 1);
  if (rowLength == 0) {
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
  coreNum = std::max<uint64_t>(1, std::min(coreNum, rowNum));
  const uint64_t smallCoreRows = rowNum / coreNum;
  const uint64_t bigCoreNum = rowNum % coreNum;

  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  uint64_t tileCols = CeilAlign(rowLength, BLOCK_BYTES / typeSize);
  const uint64_t rowsPerLoop = std::max<uint64_t>(1, TILE_LENGTH / tileCols);
  // x and y with their buffers, and one row as float.
  const uint64_t needed = rowsPerLoop * tileCols * typeSize * 2 * BUFFER_NUM + tileCols * sizeof(float) +
                          ReduceBytes(tileCols) + UB_RESERVED;
  if (needed <= ubSize) {
    context->SetTilingKey(KEY_WHOLE_ROWS);
  } else {
    tileCols = TILE_LENGTH;
    context->SetTilingKey(KEY_SPLIT_ROWS);
  }

  SoftmaxTilingData tiling;
  tiling.set_bigCoreNum(bigCoreNum);
  tiling.set_smallCoreRows(smallCoreRows);
  tiling.set_rowLength(static_cast<uint32_t>(rowLength));
  tiling.set_rowsPerLoop(static_cast<uint32_t>(rowsPerLoop));
  tiling.set_tileCols(static_cast<uint32_t>(tileCols));
  tiling.set_reduceBytes(static_cast<uint32_t>(ReduceBytes(tileCols)));
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
class Softmax : public OpDef {
 public:
  explicit Softmax(const char* name) : OpDef(name) {
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
OP_ADD(Softmax);
}  // namespace ops
