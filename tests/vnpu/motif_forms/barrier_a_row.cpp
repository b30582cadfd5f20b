// y = exp(x - m), m one row for all, a barrier in each turn of a loop over rows
// case: x=float32[256,32] m=float32[32] -> y=float32[256,32], 8 blocks
// motif: vector-barrier, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 32, ROWS = 32;

extern "C" __global__ __aicore__ void barrier_a_row(GM_ADDR x, GM_ADDR m, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in, row;
  TQue<QuePosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(row, 1, WIDTH * sizeof(float));
  pipe.InitBuffer(out, 1, ROWS * WIDTH * sizeof(float));
  GlobalTensor<float> xGm, mGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * WIDTH);
  mGm.SetGlobalBuffer((__gm__ float*)m);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * WIDTH);
  LocalTensor<float> a = in.AllocTensor<float>();
  LocalTensor<float> most = row.AllocTensor<float>();
  DataCopy(a, xGm, ROWS * WIDTH);
  DataCopy(most, mGm, WIDTH);
  in.EnQue(a);
  row.EnQue(most);
  a = in.DeQue<float>();
  most = row.DeQue<float>();
  LocalTensor<float> b = out.AllocTensor<float>();
  for (uint32_t i = 0; i < ROWS; i++) {
    Sub(b[i * WIDTH], a[i * WIDTH], most, WIDTH);
    PipeBarrier<PIPE_V>();
  }
  Exp(b, b, ROWS * WIDTH);
  in.FreeTensor(a);
  row.FreeTensor(most);
  out.EnQue(b);
  b = out.DeQue<float>();
  DataCopy(yGm, b, ROWS * WIDTH);
  out.FreeTensor(b);
}
