// MoeGatherRows: y[i] = x[index[i]], the token permutation before the experts. Definition, shape inference and tiling.
#include "moe_gather_rows_tiling.h"

#include <algorithm>
#include <cstdio>

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t TILE_BYTES = 16 * 1024;  // one buffer: a tile of a long row, or several short rows
constexpr uint32_t BUFFER_NUM = 2;          // double buffering

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const gert::Shape& x = context->GetInputShape(0)->GetStorageShape();
  if (x.GetDimNum() != 2 || x.GetDim(0) == 0 || x.GetDim(1) == 0) {
    std::printf("MoeGatherRows: x needs the axes [T, D], neither of them empty.\n");
    return ge::GRAPH_FAILED;
  }
  const uint64_t tokenNum = x.GetDim(0), rowLength = x.GetDim(1);
  const uint64_t rowNum = context->GetInputShape(1)->GetStorageShape().GetShapeSize();

  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t coreNum = platform.GetCoreNumAiv();
  if (coreNum == 0) {
    return ge::GRAPH_FAILED;
  }
  const uint64_t rowsPerCore = std::max<uint64_t>(1, CeilDiv(rowNum, coreNum));
  coreNum = std::max<uint64_t>(1, CeilDiv(rowNum, rowsPerCore));

  const uint64_t typeSize = ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
  const uint64_t blockLength = BLOCK_BYTES / typeSize;
  const uint64_t tileLength = TILE_BYTES / typeSize;
  const uint64_t tileCols = std::min(CeilDiv(rowLength, blockLength) * blockLength, tileLength);
  const uint64_t rowsPerLoop = std::min(rowsPerCore, tileLength / tileCols);

  MoeGatherRowsTilingData tiling;
  tiling.set_tokenNum(tokenNum);
  tiling.set_rowNum(rowNum);
  tiling.set_rowsPerCore(rowsPerCore);
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
  if (x->GetDimNum() != 2) {
    return GRAPH_FAILED;
  }
  gert::Shape* y = context->GetOutputShape(0);
  y->SetDimNum(2);
  y->SetDim(0, context->GetInputShape(1)->GetShapeSize());
  y->SetDim(1, x->GetDim(1));
  return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class MoeGatherRows : public OpDef {
 public:
  explicit MoeGatherRows(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("index")
        .ParamType(REQUIRED)
        .DataType({ge::DT_INT32, ge::DT_INT32, ge::DT_INT32})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");
  }
};
OP_ADD(MoeGatherRows);
}  // namespace ops
