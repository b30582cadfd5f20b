"""A one-core operator as text: every tile is scaled by a factor that grows from tile to tile; the last one is shorter.

Its tile length and its number of buffers are constants of both programs.
"""

from __future__ import annotations

from pathlib import Path

TILING_H = """\
#pragma once
#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(GrowScaleTilingData)
TILING_DATA_FIELD_DEF(uint32_t, tiles);
TILING_DATA_FIELD_DEF(uint32_t, tileLength);
TILING_DATA_FIELD_DEF(uint32_t, lastLength);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(GrowScale, GrowScaleTilingData)
}
"""
HOST = """\
#include "grow_scale_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"
namespace optiling {
constexpr uint32_t BUFFER_NUM = 1;
constexpr uint32_t TILE_LENGTH = 512;
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  uint32_t total = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  GrowScaleTilingData tiling;
  uint64_t ubSize = 0;
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
  uint32_t tile = ubSize / sizeof(float) / 8 / BUFFER_NUM;
  tile = tile < TILE_LENGTH ? tile : TILE_LENGTH;
  uint32_t tiles = (total + tile - 1) / tile;
  tiling.set_tiles(tiles);
  tiling.set_tileLength(tile);
  tiling.set_lastLength(total - (tiles - 1) * tile);
  uint32_t blocks = 1;
  context->SetBlockDim(blocks);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}
namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}
namespace ops {
class GrowScale : public OpDef {
 public:
  explicit GrowScale(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
  }
};
OP_ADD(GrowScale);
}
"""
PROCESS = """\
    uint32_t offset = 0;
    float factor = 1.0f;
    for (uint32_t i = 0; i + 1 < tiles; i++) {
      CopyIn(offset, tileLength);
      Compute(factor, tileLength);
      CopyOut(offset, tileLength);
      offset += tileLength;
      factor += 0.5f;
    }
    CopyIn(offset, lastLength);
    Compute(factor, lastLength);
    CopyOut(offset, lastLength);
"""
_KERNEL = """\
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t BUFFER_NUM = 1;
constexpr uint32_t TILE_LENGTH = 512;
class KernelGrowScale {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const GrowScaleTilingData& tiling, TPipe* pipe) {
    tiles = tiling.tiles;
    tileLength = tiling.tileLength;
    lastLength = tiling.lastLength;
    xGm.SetGlobalBuffer((__gm__ float*)x);
    yGm.SetGlobalBuffer((__gm__ float*)y);
    pipe->InitBuffer(inQueue, BUFFER_NUM, TILE_LENGTH * sizeof(float));
    pipe->InitBuffer(outQueue, BUFFER_NUM, TILE_LENGTH * sizeof(float));
  }
  __aicore__ inline void Process() {
%s  }

 private:
  __aicore__ inline void CopyIn(uint32_t offset, uint32_t n) {
    LocalTensor<float> x = inQueue.AllocTensor<float>();
    DataCopyPad(x, xGm[offset], {1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0}, {false, 0, 0, 0});
    inQueue.EnQue(x);
  }
  __aicore__ inline void Compute(float factor, uint32_t n) {
    LocalTensor<float> x = inQueue.DeQue<float>();
    LocalTensor<float> y = outQueue.AllocTensor<float>();
    Muls(y, x, factor, n);
    outQueue.EnQue(y);
    inQueue.FreeTensor(x);
  }
  __aicore__ inline void CopyOut(uint32_t offset, uint32_t n) {
    LocalTensor<float> y = outQueue.DeQue<float>();
    DataCopyPad(yGm[offset], y, {1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0});
    outQueue.FreeTensor(y);
  }
  TQue<QuePosition::VECIN, 1> inQueue;
  TQue<QuePosition::VECOUT, 1> outQueue;
  GlobalTensor<float> xGm, yGm;
  uint32_t tiles, tileLength, lastLength;
};
extern "C" __global__ __aicore__ void grow_scale(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  TPipe pipe;
  KernelGrowScale op;
  op.Init(x, y, data, &pipe);
  op.Process();
}
"""


def kernel(process: str = PROCESS) -> str:
    """The kernel with this body of ``Process``."""
    return _KERNEL % process


def write(folder: Path, process: str = PROCESS, blocks: int = 1) -> Path:
    """The operator's folder, written below ``folder``: with this body of ``Process``, launched as so many blocks."""
    root = folder / "grow_scale"
    texts = {
        "op_host/grow_scale.cpp": HOST.replace("blocks = 1;", f"blocks = {blocks};"),
        "op_host/grow_scale_tiling.h": TILING_H,
        "op_kernel/grow_scale.cpp": kernel(process),
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root
