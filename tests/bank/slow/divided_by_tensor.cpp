// y = x / 255, by a tensor of 255s
// case: x=float32[1024,256] -> y=float32[1024,256], 8 blocks
// class: div_by_scalar
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 4096, SHARE = 1024 * 256 / 8;

extern "C" __global__ __aicore__ void divided_by_tensor(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> divisorBuf;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  pipe.InitBuffer(divisorBuf, TILE * sizeof(float));
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
  LocalTensor<float> divisor = divisorBuf.Get<float>();
  Duplicate(divisor, 255.0f, TILE);
  for (int32_t i = 0; i < SHARE / TILE; i++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[i * TILE], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Div(b, a, divisor, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[i * TILE], b, TILE);
    out.FreeTensor(b);
  }
}
