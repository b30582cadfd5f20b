// y = exp(x) - 1; the input is moved by Adds with 0 before it is used
// case: x=float32[1024,512] -> y=float32[1024,512], 8 blocks
// class: extra_ub_copy
#include "kernel_operator.h"
using namespace AscendC;

class CopyThenExp {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * share);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * share);
    pipe.InitBuffer(in, 2, tile * sizeof(float));
    pipe.InitBuffer(out, 2, tile * sizeof(float));
    pipe.InitBuffer(work, tile * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (int i = 0; i < share / tile; i++) {
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopy(a, xGm[i * tile], tile);
      in.EnQue(a);
      Compute();
      LocalTensor<float> b = out.DeQue<float>();
      DataCopy(yGm[i * tile], b, tile);
      out.FreeTensor(b);
    }
  }

 private:
  __aicore__ inline void Compute() {
    LocalTensor<float> a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    LocalTensor<float> t = work.Get<float>();
    Adds(t, a, 0.0f, tile);
    Exp(t, t, tile);
    Adds(b, t, -1.0f, tile);
    out.EnQue(b);
    in.FreeTensor(a);
  }
  static constexpr int share = 1024 * 512 / 8, tile = 4096;
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> work;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void copy_then_exp(GM_ADDR x, GM_ADDR y) {
  CopyThenExp op;
  op.Init(x, y);
  op.Process();
}
