// y has two blocks of columns; x, with 0.5 added, becomes both.
// case: x=float32[512,64] -> y=float32[512,128], 8 blocks
// class: small_copies
#include "kernel_operator.h"
using namespace AscendC;

class IntoColumns {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * rows * width);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * rows * width * 2);
    pipe.InitBuffer(in, 2, group * width * sizeof(float));
    pipe.InitBuffer(out, 2, group * width * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (int g = 0; g < rows / group; g++) {
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopy(a, xGm[g * group * width], group * width);
      in.EnQue(a);
      LocalTensor<float> b = in.DeQue<float>();
      LocalTensor<float> c = out.AllocTensor<float>();
      Adds(c, b, 0.5f, group * width);
      out.EnQue(c);
      in.FreeTensor(b);
      LocalTensor<float> d = out.DeQue<float>();
      for (int r = 0; r < group; r++) {
        DataCopy(yGm[(g * group + r) * width * 2], d[r * width], width);
      }
      for (int r = 0; r < group; r++) {
        DataCopy(yGm[(g * group + r) * width * 2 + width], d[r * width], width);
      }
      out.FreeTensor(d);
    }
  }

 private:
  static constexpr int rows = 64, width = 64, group = 16;
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void into_columns(GM_ADDR x, GM_ADDR y) {
  IntoColumns op;
  op.Init(x, y);
  op.Process();
}
