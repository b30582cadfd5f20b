// y = x * exp(x) in float; x is cast for each of its two uses
// case: x=float16[1024,512] -> y=float16[1024,512], 8 blocks
// class: redundant_cast
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 2048, SHARE = 1024 * 512 / 8;

extern "C" __global__ __aicore__ void cast_twice(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> buf1, buf2;
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  pipe.InitBuffer(buf1, TILE * sizeof(float));
  pipe.InitBuffer(buf2, TILE * sizeof(float));
  GlobalTensor<half> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * SHARE);
  LocalTensor<float> p = buf1.Get<float>();
  LocalTensor<float> q = buf2.Get<float>();
  for (int32_t i = 0; i < SHARE / TILE; i++) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, xGm[i * TILE], TILE);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>();
    Cast(p, a, RoundMode::CAST_NONE, TILE);
    Exp(p, p, TILE);
    Cast(q, a, RoundMode::CAST_NONE, TILE);
    Mul(p, p, q, TILE);
    Cast(b, p, RoundMode::CAST_RINT, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<half>();
    DataCopy(yGm[i * TILE], b, TILE);
    out.FreeTensor(b);
  }
}
