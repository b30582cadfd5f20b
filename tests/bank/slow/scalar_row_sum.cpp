// y[r] = sum of row r, added up on the scalar unit
// case: x=float32[64,128] -> y=float32[64,8], 8 blocks
// class: scalar_loop
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COLS = 128, ROWS = 8, LANES = 8;

extern "C" __global__ __aicore__ void scalar_row_sum(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TBuf<QuePosition::VECCALC> inBuf, outBuf;
  pipe.InitBuffer(inBuf, ROWS * COLS * sizeof(float));
  pipe.InitBuffer(outBuf, ROWS * LANES * sizeof(float));
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * COLS);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * LANES);
  LocalTensor<float> rows = inBuf.Get<float>();
  LocalTensor<float> sums = outBuf.Get<float>();
  DataCopy(rows, xGm, ROWS * COLS);
  for (int32_t r = 0; r < ROWS; r++) {
    float sum = 0;
    for (int32_t c = 0; c < COLS; c++) {
      sum += rows.GetValue(r * COLS + c);
    }
    for (int32_t lane = 0; lane < LANES; lane++) {
      sums.SetValue(r * LANES + lane, sum);
    }
  }
  DataCopy(yGm, sums, ROWS * LANES);
}
