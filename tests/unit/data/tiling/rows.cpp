// A row-wise operator: rows are split over the cores, rows a loop follow from the Unified Buffer.
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(RowsTilingData)
  TILING_DATA_FIELD_DEF(uint32_t, rowsPerCore);
  TILING_DATA_FIELD_DEF(uint32_t, rowsPerLoop);
  TILING_DATA_FIELD_DEF(uint32_t, loops);
  TILING_DATA_FIELD_DEF(uint32_t, columns);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Rows, RowsTilingData)

constexpr uint64_t UB_RESERVED = 2048;
constexpr uint64_t BLOCK_BYTES = 32;
constexpr uint64_t BUFFER_COUNT = 2;
constexpr uint64_t SMALL_COLUMNS = 64;

static uint64_t CeilDiv(uint64_t a, uint64_t b) { return b == 0 ? 0 : (a + b - 1) / b; }

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  OP_CHECK_NULL(context->GetInputShape(0), return ge::GRAPH_FAILED);
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint32_t coreNum = platform.GetCoreNumAiv();
  uint64_t ubSize = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
  ubSize = ubSize - UB_RESERVED;

  const auto shape = context->GetInputShape(0)->GetStorageShape();
  uint64_t rows = shape.GetDim(0);
  uint64_t columns = shape.GetDim(1);
  uint64_t rowBytes = (columns * 2 + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;

  uint64_t rowsPerCore = CeilDiv(rows, coreNum);
  uint64_t rowsPerLoop = ubSize / (rowBytes * BUFFER_COUNT * 2);
  if (rowsPerLoop > rowsPerCore) {
    rowsPerLoop = rowsPerCore;
  }
  uint64_t loops = CeilDiv(rowsPerCore, rowsPerLoop);
  if (columns <= SMALL_COLUMNS) {
    context->SetTilingKey(2);
  } else {
    context->SetTilingKey(1);
  }

  RowsTilingData tiling;
  tiling.set_rowsPerCore(rowsPerCore);
  tiling.set_rowsPerLoop(rowsPerLoop);
  tiling.set_loops(loops);
  tiling.set_columns(columns);
  context->SetBlockDim(CeilDiv(rows, rowsPerCore));
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling
