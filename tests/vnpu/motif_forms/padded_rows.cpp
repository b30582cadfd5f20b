// y = exp of rows of 100, padded to 128 by the scalar unit: zeros, then whatever else
// case: x=float32[256,100] -> y=float32[256,128], 8 blocks
// motif: scalar-loop, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t WIDTH = 100, WHOLE = 128, SHARE = 256 / 8;

class PaddedRows {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WHOLE);
    pipe->InitBuffer(in, 2, WHOLE * sizeof(float));
    pipe->InitBuffer(out, 2, WHOLE * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (int32_t row = 0; row < SHARE; row++) {
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopyPad(a, xGm[row * WIDTH], {1, WIDTH * sizeof(float), 0, 0, 0}, {false, 0, 0, 0});
      in.EnQue(a);
      a = in.DeQue<float>();
      LocalTensor<float> b = out.AllocTensor<float>();
      for (int32_t k = 0; k < WHOLE - WIDTH; k++) {
        a.SetValue(WHOLE - 1 - k, 0.0f);
      }
      Exp(b, a, WHOLE);
      int32_t last = WHOLE - 3;
      while (last < WHOLE) {
        if constexpr (sizeof(float) == 4) {
          b.SetValue(last, 2.0f);
        } else {
          b.SetValue(last, 3.0f);
        }
        last++;
      }
      in.FreeTensor(a);
      out.EnQue(b);
      b = out.DeQue<float>();
      DataCopy(yGm[row * WHOLE], b, WHOLE);
      out.FreeTensor(b);
    }
  }

 private:
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void padded_rows(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  PaddedRows op;
  op.Init(x, y, &pipe);
  op.Process();
}
