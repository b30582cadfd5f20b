// y = ln(x * x + 1)
// case: x=float32[1024,256] -> y=float32[1024,256], 8 blocks
// class: full_barrier
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 4096, SHARE = 1024 * 256 / 8;

class BarrierEverywhere {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
    pipe.InitBuffer(in, 2, TILE * sizeof(float));
    pipe.InitBuffer(out, 2, TILE * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (int32_t i = 0; i < SHARE / TILE; i++) {
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopy(a, xGm[i * TILE], TILE);
      in.EnQue(a);
      PipeBarrier<PIPE_ALL>();
      a = in.DeQue<float>();
      LocalTensor<float> b = out.AllocTensor<float>();
      Mul(b, a, a, TILE);
      PipeBarrier<PIPE_ALL>();
      Adds(b, b, 1.0f, TILE);
      PipeBarrier<PIPE_ALL>();
      Ln(b, b, TILE);
      PipeBarrier<PIPE_ALL>();
      in.FreeTensor(a);
      out.EnQue(b);
      b = out.DeQue<float>();
      DataCopy(yGm[i * TILE], b, TILE);
      out.FreeTensor(b);
    }
  }

 private:
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void barrier_everywhere(GM_ADDR x, GM_ADDR y) {
  BarrierEverywhere op;
  op.Init(x, y);
  op.Process();
}
