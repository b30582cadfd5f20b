// DynamicQuant: each row of x to int8 with its own scale, max(|x|) / 127. Definition, shape inference and tiling.
#include "dynamic_quant_tiling.h"

#include <algorithm>
#include <cstdio>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t ALIGN_LENGTH = 32;  // elements: whole blocks of int8 are whole blocks of every type here
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t FLOATS_PER_REPEAT = 64;
constexpr uint64_t UB_RESERVED = 1024;
constexpr uint64_t TILE_LENGTH = 4096;  // elements of one loop, when rows are shorter
constexpr uint32_t BUFFER_NUM = 2;      // double buffering

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
static uint64_t CeilAlign(uint64_t a, uint64_t b) { return CeilDiv(a, b) * b; }

// Bytes of UB: x, y and the scales with their buffers; one row as float and as half; maxima and ReduceMax's work space.
static uint64_t UbBytes(uint64_t rows, uint64_t alignedLength, uint64_t typeSize, uint64_t bufferNum,
                        uint64_t reduceBytes) {
  const uint64_t queues =
      bufferNum * (rows * alignedLength * (typeSize + 1) + CeilAlign(rows * sizeof(float), BLOCK_BYTES));
  const uint64_t row = alignedLength * (sizeof(float) + sizeof(uint16_t));
  return queues + row + CeilAlign(rows * sizeof(float), BLOCK_BYTES) + reduceBytes + UB_RESERVED;
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
  const uint64_t alignedLength = CeilAlign(rowLength, ALIGN_LENGTH);
  const uint64_t reduceBytes = CeilAlign(CeilDiv(alignedLength, FLOATS_PER_REPEAT) * 2 * sizeof(float), BLOCK_BYTES);
  const uint64_t rowsPerLoop = std::max<uint64_t>(1, TILE_LENGTH / alignedLength);
  uint32_t bufferNum = BUFFER_NUM;
  if (UbBytes(rowsPerLoop, alignedLength, typeSize, bufferNum, reduceBytes) > ubSize) {
    bufferNum = 1;
  }
  const uint64_t needed = UbBytes(rowsPerLoop, alignedLength, typeSize, bufferNum, reduceBytes);
  if (needed > ubSize) {
    std::printf("DynamicQuant: a row of %lu elements needs %lu bytes of UB, there are %lu.\n", rowLength, needed,
                ubSize);
    return ge::GRAPH_FAILED;
  }

  DynamicQuantTilingData tiling;
  tiling.set_bigCoreNum(bigCoreNum);
  tiling.set_smallCoreRows(smallCoreRows);
  tiling.set_rowLength(static_cast<uint32_t>(rowLength));
  tiling.set_alignedLength(static_cast<uint32_t>(alignedLength));
  tiling.set_rowsPerLoop(static_cast<uint32_t>(rowsPerLoop));
  tiling.set_reduceBytes(static_cast<uint32_t>(reduceBytes));
  tiling.set_bufferNum(bufferNum);
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
  const size_t dimNum = x->GetDimNum();
  if (dimNum == 0) {
    return GRAPH_FAILED;
  }
  *context->GetOutputShape(0) = *x;
  gert::Shape* scale = context->GetOutputShape(1);
  scale->SetDimNum(dimNum - 1);
  for (size_t i = 0; i + 1 < dimNum; i++) {
    scale->SetDim(i, x->GetDim(i));
  }
  return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, ge::DT_INT8);
  context->SetOutputDataType(1, ge::DT_FLOAT);
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class DynamicQuant : public OpDef {
 public:
  explicit DynamicQuant(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_INT8, ge::DT_INT8}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("scale")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(DynamicQuant);
}  // namespace ops
