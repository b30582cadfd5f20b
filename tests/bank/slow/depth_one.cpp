// z = max(x, y) - min(x, y)
// case: x=float32[1024,256] y=float32[1024,256] -> z=float32[1024,256], 8 blocks
// class: no_double_buffer
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t DEPTH = 1;
constexpr uint32_t TILE = 4096;
constexpr uint32_t SHARE = 1024 * 256 / 8;

extern "C" __global__ __aicore__ void depth_one(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  TPipe pipe;
  TQue<QuePosition::VECIN, DEPTH> qx, qy;
  TQue<QuePosition::VECOUT, DEPTH> qz;
  TBuf<QuePosition::VECCALC> buf;
  GlobalTensor<float> gx, gy, gz;
  gx.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
  gy.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
  gz.SetGlobalBuffer((__gm__ float*)z + GetBlockIdx() * SHARE);
  pipe.InitBuffer(qx, DEPTH, TILE * 4);
  pipe.InitBuffer(qy, DEPTH, TILE * 4);
  pipe.InitBuffer(qz, DEPTH, TILE * 4);
  pipe.InitBuffer(buf, TILE * 4);
  LocalTensor<float> low = buf.Get<float>();
  for (uint32_t at = 0; at < SHARE; at += TILE) {
    LocalTensor<float> a = qx.AllocTensor<float>();
    LocalTensor<float> b = qy.AllocTensor<float>();
    DataCopy(a, gx[at], TILE);
    DataCopy(b, gy[at], TILE);
    qx.EnQue(a);
    qy.EnQue(b);
    a = qx.DeQue<float>();
    b = qy.DeQue<float>();
    LocalTensor<float> c = qz.AllocTensor<float>();
    Max(c, a, b, TILE);
    Min(low, a, b, TILE);
    Sub(c, c, low, TILE);
    qz.EnQue(c);
    qx.FreeTensor(a);
    qy.FreeTensor(b);
    c = qz.DeQue<float>();
    DataCopy(gz[at], c, TILE);
    qz.FreeTensor(c);
  }
}
