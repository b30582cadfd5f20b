// y = x with rows in another order, by way of two queues and a copy between them
// case: x=float32[512,256] -> y=float32[512,256], 8 blocks
// motif: bound-queue, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t LENGTH = 256, ROWS = 512 / 8, BUFFERS = 1;

class MovedRows {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x);
    yGm.SetGlobalBuffer((__gm__ float*)y);
    pipe->InitBuffer(inQueue, BUFFERS, LENGTH * sizeof(float));
    pipe->InitBuffer(outQueue, BUFFERS, LENGTH * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < ROWS; i++) {
      const uint32_t row = GetBlockIdx() * ROWS + i;
      CopyIn(row);
      Compute();
      CopyOut(511 - row);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t row) {
    LocalTensor<float> in = inQueue.AllocTensor<float>();
    DataCopy(in, xGm[row * LENGTH], LENGTH);
    inQueue.EnQue(in);
  }
  __aicore__ inline void Compute() {
    LocalTensor<float> in = inQueue.DeQue<float>();
    LocalTensor<float> out = outQueue.AllocTensor<float>();
    DataCopy(out, in, LENGTH);
    outQueue.EnQue(out);
    inQueue.FreeTensor(in);
  }
  __aicore__ inline void CopyOut(uint32_t row) {
    LocalTensor<float> out = outQueue.DeQue<float>();
    DataCopy(yGm[row * LENGTH], out, LENGTH);
    outQueue.FreeTensor(out);
  }
  TQue<QuePosition::VECIN, 1> inQueue;
  TQue<QuePosition::VECOUT, 1> outQueue;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void moved_rows(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  MovedRows op;
  op.Init(x, y, &pipe);
  op.Process();
}
