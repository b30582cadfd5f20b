// y = (x - 2 s) / s, s a value a row, which BroadCast makes matrices of
// case: x=float32[512,192] s=float32[512] -> y=float32[512,192], 8 blocks
// motif: merged-rows, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 192, ROWS = 16, SHARE = 512 / 8;

extern "C" __global__ __aicore__ void spread_values(GM_ADDR x, GM_ADDR s, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in, scales;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> matrix;
  pipe.InitBuffer(in, 2, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(scales, 2, ROWS * sizeof(float));
  pipe.InitBuffer(out, 2, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(matrix, ROWS * WIDTH * sizeof(float));
  GlobalTensor<float> xGm, sGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
  sGm.SetGlobalBuffer((__gm__ float*)s + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WIDTH);
  for (uint32_t i = 0; i < SHARE / ROWS; i++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    LocalTensor<float> scale = scales.AllocTensor<float>();
    DataCopy(a, xGm[i * ROWS * WIDTH], ROWS * WIDTH);
    DataCopy(scale, sGm[i * ROWS], ROWS);
    in.EnQue(a);
    scales.EnQue(scale);
    a = in.DeQue<float>();
    scale = scales.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    LocalTensor<float> m = matrix.Get<float>();
    const uint32_t of[2] = {ROWS, 1};
    const uint32_t to[2] = {ROWS, WIDTH};
    BroadCast<float, 2, 1>(m, scale, to, of);
    PipeBarrier<PIPE_V>();
    Axpy(a, m, -2.0f, ROWS * WIDTH);
    PipeBarrier<PIPE_V>();
    BroadCast<float, 2, 1>(m, scale, to, of);
    PipeBarrier<PIPE_V>();
    Div(b, a, m, ROWS * WIDTH);
    in.FreeTensor(a);
    scales.FreeTensor(scale);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[i * ROWS * WIDTH], b, ROWS * WIDTH);
    out.FreeTensor(b);
  }
}
