// y = max(x, 0), an element at a time
// case: x=float32[64,256] -> y=float32[64,256], 8 blocks
// class: scalar_loop
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COUNT = 64 * 256 / 8;

extern "C" __global__ __aicore__ void scalar_relu(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, COUNT * sizeof(float));
  pipe.InitBuffer(out, 1, COUNT * sizeof(float));
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * COUNT);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * COUNT);
  LocalTensor<float> a = in.AllocTensor<float>();
  DataCopy(a, xGm, COUNT);
  in.EnQue(a);
  a = in.DeQue<float>();
  LocalTensor<float> b = out.AllocTensor<float>();
  for (int32_t i = 0; i < COUNT; i++) {
    float v = a.GetValue(i);
    b.SetValue(i, v > 0 ? v : 0);
  }
  in.FreeTensor(a);
  out.EnQue(b);
  b = out.DeQue<float>();
  DataCopy(yGm, b, COUNT);
  out.FreeTensor(b);
}
