// y = the sum of all rows of a core's part, a row added at a time
// case: x=float32[1024,128] -> y=float32[8,128], 8 blocks
// class: slow_reduction
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COLS = 128, ROWS = 128, GROUP = 32;

extern "C" __global__ __aicore__ void running_row_sum(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TBuf<QuePosition::VECCALC> sumBuf;
  pipe.InitBuffer(in, 2, GROUP * COLS * sizeof(float));
  pipe.InitBuffer(sumBuf, COLS * sizeof(float));
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * COLS);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * COLS);
  LocalTensor<float> sum = sumBuf.Get<float>();
  Duplicate(sum, 0.0f, COLS);
  for (int32_t g = 0; g < ROWS / GROUP; g++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[g * GROUP * COLS], GROUP * COLS);
    in.EnQue(a);
    a = in.DeQue<float>();
    for (int32_t r = 0; r < GROUP; r++) {
      Add(sum, sum, a[r * COLS], COLS);
    }
    in.FreeTensor(a);
  }
  DataCopy(yGm, sum, COLS);
}
