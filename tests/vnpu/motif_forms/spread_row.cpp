// y = (x - g) g, g one row for all, which BroadCast makes matrices of
// case: x=float16[256,160] g=float16[160] -> y=float16[256,160], 8 blocks
// motif: merged-rows, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 160, ROWS = 16, SHARE = 256 / 8;

extern "C" __global__ __aicore__ void spread_row(GM_ADDR x, GM_ADDR g, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECIN, 1> row;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> matrix;
  pipe.InitBuffer(in, 2, ROWS * WIDTH * sizeof(half));
  pipe.InitBuffer(row, 1, WIDTH * sizeof(half));
  pipe.InitBuffer(out, 2, ROWS * WIDTH * sizeof(half));
  pipe.InitBuffer(matrix, ROWS * WIDTH * sizeof(half));
  GlobalTensor<half> xGm, gGm, yGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * SHARE * WIDTH);
  gGm.SetGlobalBuffer((__gm__ half*)g);
  yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * SHARE * WIDTH);
  LocalTensor<half> gamma = row.AllocTensor<half>();
  DataCopy(gamma, gGm, WIDTH);
  row.EnQue(gamma);
  gamma = row.DeQue<half>();
  for (uint32_t i = 0; i < SHARE / ROWS; i++) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, xGm[i * ROWS * WIDTH], ROWS * WIDTH);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>();
    LocalTensor<half> m = matrix.Get<half>();
    const uint32_t of[2] = {1, WIDTH};
    const uint32_t to[2] = {ROWS, WIDTH};
    BroadCast<half, 2, 0>(m, gamma, to, of);
    PipeBarrier<PIPE_V>();
    Sub(a, a, m, ROWS * WIDTH);
    PipeBarrier<PIPE_V>();
    BroadCast<half, 2, 0>(m, gamma, to, of);
    PipeBarrier<PIPE_V>();
    Mul(b, m, a, ROWS * WIDTH);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<half>();
    DataCopy(yGm[i * ROWS * WIDTH], b, ROWS * WIDTH);
    out.FreeTensor(b);
  }
  row.FreeTensor(gamma);
}
