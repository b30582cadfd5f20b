// y = x * x + 1
// case: x=float16[2048,256] -> y=float16[2048,256], 8 blocks
// class: no_double_buffer
#include "kernel_operator.h"
using namespace AscendC;

class SingleQueue {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * total);
    yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * total);
    pipe.InitBuffer(in, 1, tile * sizeof(half));
    pipe.InitBuffer(out, 1, tile * sizeof(half));
  }
  __aicore__ inline void Process() {
    for (int i = 0; i < total / tile; i++) {
      CopyIn(i);
      Compute();
      CopyOut(i);
    }
  }

 private:
  __aicore__ inline void CopyIn(int i) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, xGm[i * tile], tile);
    in.EnQue(a);
  }
  __aicore__ inline void Compute() {
    LocalTensor<half> a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>();
    Mul(b, a, a, tile);
    Adds(b, b, (half)1.0f, tile);
    out.EnQue(b);
    in.FreeTensor(a);
  }
  __aicore__ inline void CopyOut(int i) {
    LocalTensor<half> b = out.DeQue<half>();
    DataCopy(yGm[i * tile], b, tile);
    out.FreeTensor(b);
  }
  static constexpr int total = 2048 * 256 / 8, tile = 8192;
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  GlobalTensor<half> xGm, yGm;
};

extern "C" __global__ __aicore__ void single_queue(GM_ADDR x, GM_ADDR y) {
  SingleQueue op;
  op.Init(x, y);
  op.Process();
}
