// y = exp(x) w + x by a ring for each, and scratch, all made where the kernel begins
// case: x=float32[64,512] w=float32[64,512] -> y=float32[64,512], 8 blocks
// motif: rings-for-queues, 3 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 1024, SHARE = 64 * 512 / 8;

class Weighted {
 public:
  __aicore__ inline void Begin(GM_ADDR x, GM_ADDR w, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(values, 2, TILE * sizeof(float));
    pipe->InitBuffer(weights, 2, TILE * sizeof(float));
    pipe->InitBuffer(power, TILE * sizeof(float));
    pipe->InitBuffer(results, 2, TILE * sizeof(float));
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE, SHARE);
    wGm.SetGlobalBuffer((__gm__ float*)w + GetBlockIdx() * SHARE, SHARE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE, SHARE);
  }
  __aicore__ inline void Run() {
    for (uint32_t at = 0; at < SHARE; at += TILE) {
      LocalTensor<float> x = values.AllocTensor<float>();
      DataCopy(x, xGm[at], TILE);
      values.EnQue(x);
      LocalTensor<float> w = weights.AllocTensor<float>();
      DataCopy(w, wGm[at], TILE);
      weights.EnQue(w);
      x = values.DeQue<float>();
      LocalTensor<float> e = power.Get<float>();
      Exp(e, x, TILE);
      PipeBarrier<PIPE_V>();
      w = weights.DeQue<float>();
      Mul(e, e, w, TILE);
      weights.FreeTensor(w);
      PipeBarrier<PIPE_V>();
      LocalTensor<float> y = results.AllocTensor<float>();
      Add(y, e, x, TILE);
      values.FreeTensor(x);
      results.EnQue(y);
      y = results.DeQue<float>();
      DataCopy(yGm[at], y, TILE);
      results.FreeTensor(y);
    }
  }

 private:
  TQue<TPosition::VECIN, 1> values;
  TQue<TPosition::VECIN, 1> weights;
  TQue<TPosition::VECOUT, 1> results;
  TBuf<TPosition::VECCALC> power;
  GlobalTensor<float> xGm, wGm, yGm;
};

extern "C" __global__ __aicore__ void rings_of_rooms(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
  TPipe pipe;
  Weighted weighted;
  weighted.Begin(x, w, y, &pipe);
  weighted.Run();
}
