// y = 1 / (1 + |x|), with a tensor of ones that is filled in every turn
// case: x=float32[1024,256] -> y=float32[1024,256], 8 blocks
// class: loop_invariant
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 2048, SHARE = 1024 * 256 / 8;

extern "C" __global__ __aicore__ void ones_every_turn(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> onesBuf;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  pipe.InitBuffer(onesBuf, TILE * sizeof(float));
  LocalTensor<float> ones = onesBuf.Get<float>();
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
  for (int32_t at = 0; at < SHARE; at += TILE) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[at], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Duplicate(ones, 1.0f, TILE);
    Abs(a, a, TILE);
    Add(a, a, ones, TILE);
    Div(b, ones, a, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[at], b, TILE);
    out.FreeTensor(b);
  }
}
