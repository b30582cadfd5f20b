// y = x * gamma; gamma is loaded again for every row
// case: x=float32[512,512] gamma=float32[512] -> y=float32[512,512], 8 blocks
// class: loop_invariant
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COLS = 512, ROWS = 64;

extern "C" __global__ __aicore__ void gamma_every_row(GM_ADDR x, GM_ADDR gamma, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> gammaBuf;
  pipe.InitBuffer(in, 2, COLS * sizeof(float));
  pipe.InitBuffer(out, 2, COLS * sizeof(float));
  pipe.InitBuffer(gammaBuf, COLS * sizeof(float));
  GlobalTensor<float> xGm, gammaGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * COLS);
  gammaGm.SetGlobalBuffer((__gm__ float*)gamma);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * COLS);
  LocalTensor<float> weights = gammaBuf.Get<float>();
  for (int32_t r = 0; r < ROWS; r++) {
    DataCopy(weights, gammaGm, COLS);
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[r * COLS], COLS);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Mul(b, a, weights, COLS);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[r * COLS], b, COLS);
    out.FreeTensor(b);
  }
}
