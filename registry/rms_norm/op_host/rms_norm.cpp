// RmsNorm: y = x / sqrt(mean(x^2) + epsilon) * gamma over the last axis. Definition, shape inference and tiling.
#include "rms_norm_tiling.h"

#include <algorithm>
#include <cstdio>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t FLOATS_PER_REPEAT = 64;
constexpr uint64_t UB_RESERVED = 1024;
constexpr uint64_t SPLIT_TILE_COLS = 2048;    // columns of one loop when a row doesn't fit UB
constexpr uint64_t MAX_ROWS_PER_LOOP = 4095;  // pieces of one DataCopyPad
constexpr uint32_t BUFFER_NUM = 2;            // double buffering
constexpr uint64_t KEY_WHOLE_ROWS = 0;
constexpr uint64_t KEY_SPLIT_ROWS = 1;

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
static uint64_t CeilAlign(uint64_t a, uint64_t b) { return CeilDiv(a, b) * b; }
static uint64_t ReduceBytes(uint64_t cols) {
  return CeilAlign(CeilDiv(cols, FLOATS_PER_REPEAT) * sizeof(float), BLOCK_BYTES);
}

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
  const uint64_t rowLength = context->GetInputShape(1)->GetStorageShape().GetShapeSize();
  const size_t dimNum = shape.GetDimNum();
  if (dimNum == 0 || rowLength == 0 || static_cast<uint64_t>(shape.GetDim(dimNum - 1)) != rowLength) {
    std::printf("RmsNorm: gamma has %lu elements; it needs as many as the last axis of x.\n", rowLength);
    return ge::GRAPH_FAILED;
  }
  const uint64_t rowNum = shape.GetShapeSize() / rowLength;

  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t ubSize = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0 || ubSize <= UB_RESERVED) {
    return ge::GRAPH_FAILED;
  }
  ubSize -= UB_RESERVED;
  coreNum = std::max<uint64_t>(1, std::min(coreNum, rowNum));
  const uint64_t smallCoreRows = rowNum / coreNum;
  const uint64_t bigCoreNum = rowNum % coreNum;

  // UB of whole rows: x and y with their buffers for each row; once gamma as it comes, gamma, x and x^2 as float.
  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  const uint64_t blockLength = BLOCK_BYTES / typeSize;
  uint64_t tileCols = CeilAlign(rowLength, blockLength);
  const uint64_t sharedBytes = tileCols * (typeSize + 3 * sizeof(float)) + ReduceBytes(tileCols);
  const uint64_t rowBytes = tileCols * typeSize * 2 * BUFFER_NUM;
  uint64_t rowsPerLoop = 1;
  if (sharedBytes + rowBytes <= ubSize) {
    rowsPerLoop = std::min((ubSize - sharedBytes) / rowBytes, MAX_ROWS_PER_LOOP);
    rowsPerLoop = std::min(rowsPerLoop, std::max<uint64_t>(1, CeilDiv(rowNum, coreNum)));
    context->SetTilingKey(KEY_WHOLE_ROWS);
  } else {
    tileCols = SPLIT_TILE_COLS;
    context->SetTilingKey(KEY_SPLIT_ROWS);
  }

  RmsNormTilingData tiling;
  tiling.set_bigCoreNum(bigCoreNum);
  tiling.set_smallCoreRows(smallCoreRows);
  tiling.set_rowLength(static_cast<uint32_t>(rowLength));
  tiling.set_rowsPerLoop(static_cast<uint32_t>(rowsPerLoop));
  tiling.set_tileCols(static_cast<uint32_t>(tileCols));
  tiling.set_reduceBytes(static_cast<uint32_t>(ReduceBytes(tileCols)));
  tiling.set_bufferNum(BUFFER_NUM);
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
class RmsNorm : public OpDef {
 public:
  explicit RmsNorm(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("gamma")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("epsilon").AttrType(OPTIONAL).Float(1e-6);
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(RmsNorm);
}  // namespace ops
