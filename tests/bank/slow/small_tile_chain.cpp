// y = 1 / (1 + exp(-x)) in tiles of 256 floats
// case: x=float32[1024,256] -> y=float32[1024,256], 8 blocks
// class: small_tiles
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 256;
constexpr int32_t TILES = 1024 * 256 / 8 / TILE;

extern "C" __global__ __aicore__ void small_tile_chain(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * TILES * TILE);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * TILES * TILE);
  for (int32_t i = 0; i < TILES; i++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[i * TILE], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Muls(b, a, -1.0f, TILE);
    Exp(b, b, TILE);
    Adds(b, b, 1.0f, TILE);
    Reciprocal(b, b, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[i * TILE], b, TILE);
    out.FreeTensor(b);
  }
}
