// An elementwise operator with fixed numbers: a plain tiling struct, written through a pointer.
#include "register/op_def_registry.h"

struct FixedTilingData {
  uint32_t totalLength;
  uint32_t tileLength;
  uint32_t bufferNum;
};

namespace optiling {
constexpr uint32_t BLOCK_DIM = 8;
constexpr uint32_t TILE_LENGTH = 1024;
#define BUFFER_NUM 2

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  FixedTilingData* tiling = context->GetTilingData<FixedTilingData>();
  tiling->totalLength = context->GetInputShape(0)->GetOriginShape().GetShapeSize();
  tiling->tileLength = TILE_LENGTH;
  tiling->bufferNum = BUFFER_NUM;
  context->SetBlockDim(BLOCK_DIM);
  size_t* workspace = context->GetWorkspaceSizes(1);
  workspace[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  int64_t unrelated = 4096 / 2;
  return unrelated > 0 ? GRAPH_SUCCESS : GRAPH_FAILED;
}
}  // namespace ge
