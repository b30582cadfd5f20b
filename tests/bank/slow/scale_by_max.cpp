// y = x / max of its row, for rows of 256 halves
// case: x=float16[512,256] -> y=float16[512,256], 8 blocks
// class: other:scalar_roundtrip
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void scale_by_max(GM_ADDR x, GM_ADDR y) {
  constexpr int32_t cols = 256, rows = 64, group = 8;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> maxBuf, workBuf, absBuf;
  pipe.InitBuffer(in, 2, group * cols * sizeof(half));
  pipe.InitBuffer(out, 2, group * cols * sizeof(half));
  pipe.InitBuffer(maxBuf, 32);
  pipe.InitBuffer(workBuf, cols * sizeof(half));
  pipe.InitBuffer(absBuf, cols * sizeof(half));
  GlobalTensor<half> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * rows * cols);
  yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * rows * cols);
  LocalTensor<half> biggest = maxBuf.Get<half>();
  LocalTensor<half> work = workBuf.Get<half>();
  LocalTensor<half> positive = absBuf.Get<half>();
  for (int32_t g = 0; g < rows / group; g++) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, xGm[g * group * cols], group * cols);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>();
    for (int32_t r = 0; r < group; r++) {
      Abs(positive, a[r * cols], cols);
      ReduceMax(biggest, positive, work, cols, false);
      float top = (float)biggest.GetValue(0) + 1e-3f;
      Muls(b[r * cols], a[r * cols], (half)(1.0f / top), cols);
    }
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<half>();
    DataCopy(yGm[g * group * cols], b, group * cols);
    out.FreeTensor(b);
  }
}
