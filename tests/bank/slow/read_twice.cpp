// y = x / (sum of |row| + 1); each row is loaded once for the sum and once for the quotient
// case: x=float32[256,1024] -> y=float32[256,1024], 8 blocks
// class: two_passes
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COLS = 1024, ROWS = 32;

extern "C" __global__ __aicore__ void read_twice(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> sumBuf, workBuf;
  pipe.InitBuffer(in, 2, COLS * sizeof(float));
  pipe.InitBuffer(out, 2, COLS * sizeof(float));
  pipe.InitBuffer(sumBuf, 32);
  pipe.InitBuffer(workBuf, COLS * sizeof(float));
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * COLS);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * COLS);
  LocalTensor<float> sum = sumBuf.Get<float>();
  LocalTensor<float> work = workBuf.Get<float>();
  for (int32_t r = 0; r < ROWS; r++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[r * COLS], COLS);
    in.EnQue(a);
    a = in.DeQue<float>();
    Abs(a, a, COLS);
    ReduceSum(sum, a, work, COLS);
    in.FreeTensor(a);
    float total = sum.GetValue(0) + 1.0f;
    LocalTensor<float> again = in.AllocTensor<float>();
    DataCopy(again, xGm[r * COLS], COLS);
    in.EnQue(again);
    again = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Muls(b, again, 1.0f / total, COLS);
    in.FreeTensor(again);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[r * COLS], b, COLS);
    out.FreeTensor(b);
  }
}
