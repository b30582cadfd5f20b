// y = x * 0.125 + y0, an element at a time
// case: x=float32[64,256] y0=float32[64,256] -> y=float32[64,256], 8 blocks
// class: scalar_loop
#include "kernel_operator.h"
using namespace AscendC;

class ScalarScale {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y0, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * count);
    y0Gm.SetGlobalBuffer((__gm__ float*)y0 + GetBlockIdx() * count);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * count);
    pipe.InitBuffer(xBuf, count * sizeof(float));
    pipe.InitBuffer(y0Buf, count * sizeof(float));
    pipe.InitBuffer(yBuf, count * sizeof(float));
  }
  __aicore__ inline void Process() {
    LocalTensor<float> a = xBuf.Get<float>();
    LocalTensor<float> b = y0Buf.Get<float>();
    LocalTensor<float> c = yBuf.Get<float>();
    DataCopy(a, xGm, count);
    DataCopy(b, y0Gm, count);
    for (uint32_t i = 0; i < count; ++i) {
      c.SetValue(i, a.GetValue(i) * 0.125f);
    }
    for (uint32_t i = 0; i < count; ++i) {
      c.SetValue(i, c.GetValue(i) + b.GetValue(i));
    }
    DataCopy(yGm, c, count);
  }

 private:
  static constexpr uint32_t count = 64 * 256 / 8;
  TPipe pipe;
  TBuf<QuePosition::VECCALC> xBuf, y0Buf, yBuf;
  GlobalTensor<float> xGm, y0Gm, yGm;
};

extern "C" __global__ __aicore__ void scalar_scale(GM_ADDR x, GM_ADDR y0, GM_ADDR y) {
  ScalarScale op;
  op.Init(x, y0, y);
  op.Process();
}
