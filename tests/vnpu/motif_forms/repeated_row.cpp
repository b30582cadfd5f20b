// y = (x - g) g for a row g, which a loop of copies repeats for as many rows as are computed at once
// case: x=float32[256,128] g=float32[128] -> y=float32[256,128], 8 blocks
// motif: merged-rows, 2 alternatives
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 128, ROWS = 16, SHARE = 256 / 8;

extern "C" __global__ __aicore__ void repeated_row(GM_ADDR x, GM_ADDR g, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in, row;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> matrix;
  pipe.InitBuffer(in, 2, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(row, 1, WIDTH * sizeof(float));
  pipe.InitBuffer(out, 2, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(matrix, ROWS * WIDTH * sizeof(float));
  GlobalTensor<float> xGm, gGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
  gGm.SetGlobalBuffer((__gm__ float*)g);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WIDTH);
  LocalTensor<float> one = row.AllocTensor<float>();
  DataCopy(one, gGm, WIDTH);
  row.EnQue(one);
  one = row.DeQue<float>();
  for (uint32_t at = 0; at < SHARE; at += ROWS) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[at * WIDTH], ROWS * WIDTH);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> all = matrix.Get<float>();
    const uint32_t rows = SHARE - at < ROWS ? SHARE - at : ROWS;
    if (rows > 1) {
      for (uint32_t r = 0; r < rows; r++) {
        const uint32_t start = r * WIDTH;
        PipeBarrier<PIPE_V>();
        Adds(all[start], one, 0.0f, WIDTH);
      }
    }
    LocalTensor<float> b = out.AllocTensor<float>();
    PipeBarrier<PIPE_V>();
    Sub(b, a, all, rows * WIDTH);
    PipeBarrier<PIPE_V>();
    Mul(b, b, all, rows * WIDTH);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[at * WIDTH], b, rows * WIDTH);
    out.FreeTensor(b);
  }
  row.FreeTensor(one);
}
