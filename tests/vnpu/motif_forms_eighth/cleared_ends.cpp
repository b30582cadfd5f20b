// y = x with zeros in the last 64 elements of each row, on a copy of what was loaded
// case: x=float32[512,1024] -> y=float32[512,1024], 8 blocks
// motif: bound-queue, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t LENGTH = 1024, ROWS = 512 / 8, CLEARED = 64;

class ClearedEnds {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * LENGTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * LENGTH);
    pipe->InitBuffer(inQueue, 2, LENGTH * sizeof(float));
    pipe->InitBuffer(outQueue, 2, LENGTH * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < ROWS; i++) {
      LocalTensor<float> in = inQueue.AllocTensor<float>();
      DataCopy(in, xGm[i * LENGTH], LENGTH);
      inQueue.EnQue(in);
      Compute();
      LocalTensor<float> out = outQueue.DeQue<float>();
      DataCopy(yGm[i * LENGTH], out, LENGTH);
      outQueue.FreeTensor(out);
    }
  }

 private:
  __aicore__ inline void Compute() {
    LocalTensor<float> in = inQueue.DeQue<float>();
    LocalTensor<float> out = outQueue.AllocTensor<float>();
    Adds(out, in, 0.0f, LENGTH);
    PipeBarrier<PIPE_V>();
    Muls(out[LENGTH - CLEARED], in[LENGTH - CLEARED], 0.0f, CLEARED);
    outQueue.EnQue(out);
    inQueue.FreeTensor(in);
  }
  TQue<QuePosition::VECIN, 1> inQueue;
  TQue<QuePosition::VECOUT, 1> outQueue;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void cleared_ends(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  ClearedEnds op;
  op.Init(x, y, &pipe);
  op.Process();
}
