// y = x * gamma; gamma is copied under itself until it is as long as the tile
// case: x=float32[2048,64] gamma=float32[64] -> y=float32[2048,64], 8 blocks
// class: broadcast_loop
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COLS = 64, ROWS = 256, GROUP = 32;

extern "C" __global__ __aicore__ void expanded_row(GM_ADDR x, GM_ADDR gamma, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> rowBuf, wideBuf;
  pipe.InitBuffer(in, 2, GROUP * COLS * sizeof(float));
  pipe.InitBuffer(out, 2, GROUP * COLS * sizeof(float));
  pipe.InitBuffer(rowBuf, COLS * sizeof(float));
  pipe.InitBuffer(wideBuf, GROUP * COLS * sizeof(float));
  GlobalTensor<float> xGm, gammaGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * COLS);
  gammaGm.SetGlobalBuffer((__gm__ float*)gamma);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * COLS);
  LocalTensor<float> row = rowBuf.Get<float>();
  LocalTensor<float> wide = wideBuf.Get<float>();
  DataCopy(row, gammaGm, COLS);
  for (int32_t g = 0; g < ROWS / GROUP; g++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[g * GROUP * COLS], GROUP * COLS);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    for (int32_t r = 0; r < GROUP; r++) {
      Adds(wide[r * COLS], row, 0.0f, COLS);
    }
    Mul(b, a, wide, GROUP * COLS);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[g * GROUP * COLS], b, GROUP * COLS);
    out.FreeTensor(b);
  }
}
