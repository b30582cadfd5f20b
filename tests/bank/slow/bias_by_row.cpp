// y = x + bias, a row at a time
// case: x=float32[2048,64] bias=float32[64] -> y=float32[2048,64], 8 blocks
// class: short_vectors
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COLS = 64, ROWS = 2048 / 8, AT_ONCE = 64;

class BiasByRow {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR bias, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * COLS);
    biasGm.SetGlobalBuffer((__gm__ float*)bias);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * COLS);
    pipe.InitBuffer(in, 2, AT_ONCE * COLS * sizeof(float));
    pipe.InitBuffer(out, 2, AT_ONCE * COLS * sizeof(float));
    pipe.InitBuffer(biasBuf, COLS * sizeof(float));
  }
  __aicore__ inline void Process() {
    LocalTensor<float> bias = biasBuf.Get<float>();
    DataCopy(bias, biasGm, COLS);
    for (int32_t first = 0; first < ROWS; first += AT_ONCE) {
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopy(a, xGm[first * COLS], AT_ONCE * COLS);
      in.EnQue(a);
      a = in.DeQue<float>();
      LocalTensor<float> b = out.AllocTensor<float>();
      for (int32_t r = 0; r < AT_ONCE; r++) {
        Add(b[r * COLS], a[r * COLS], bias, COLS);
      }
      in.FreeTensor(a);
      out.EnQue(b);
      b = out.DeQue<float>();
      DataCopy(yGm[first * COLS], b, AT_ONCE * COLS);
      out.FreeTensor(b);
    }
  }

 private:
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> biasBuf;
  GlobalTensor<float> xGm, biasGm, yGm;
};

extern "C" __global__ __aicore__ void bias_by_row(GM_ADDR x, GM_ADDR bias, GM_ADDR y) {
  BiasByRow op;
  op.Init(x, bias, y);
  op.Process();
}
