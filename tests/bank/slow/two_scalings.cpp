// y = (x * 0.5) * 0.25 + 1 + 2, a step at a time
// case: x=float16[2048,512] -> y=float16[2048,512], 8 blocks
// class: unfused_muladd
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 4096, SHARE = 2048 * 512 / 8;

extern "C" __global__ __aicore__ void two_scalings(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  GlobalTensor<half> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * SHARE);
  half factor = (half)0.5f, second = (half)0.25f;
  for (int32_t i = 0; i < SHARE / TILE; i++) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, xGm[i * TILE], TILE);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>();
    Muls(b, a, factor, TILE);
    Muls(b, b, second, TILE);
    Adds(b, b, (half)1.0f, TILE);
    Adds(b, b, (half)2.0f, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<half>();
    DataCopy(yGm[i * TILE], b, TILE);
    out.FreeTensor(b);
  }
}
