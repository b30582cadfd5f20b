// y = the sum of each row of x, added up where it is stored
// case: x=float32[64,40] -> y=float32[64], 1 blocks
// motif: kept-value, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 40, ROWS = 64;

extern "C" __global__ __aicore__ void sums_in_place(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TBuf<QuePosition::VECCALC> values, sums;
  pipe.InitBuffer(values, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(sums, ROWS * sizeof(float));
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x);
  yGm.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> value = values.Get<float>();
  LocalTensor<float> sum = sums.Get<float>();
  DataCopy(value, xGm, ROWS * WIDTH);
  Duplicate(sum, 0.0f, ROWS);
  for (uint32_t row = 0; row < ROWS; row++) {
    for (uint32_t i = 0; i < WIDTH; i++) {
      const float next = value.GetValue(row * WIDTH + i);
      sum.SetValue(row, sum.GetValue(row) + next);
    }
  }
  DataCopy(yGm, sum, ROWS);
}
