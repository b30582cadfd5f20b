// y = x * w, w loaded for each row of x into a queue of its own
// case: x=float32[512,1000] w=float32[1000] -> y=float32[512,1000], 8 blocks
// motif: held-tile, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t LENGTH = 1000, COUNT = 64;

class RowForAll {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * COUNT * LENGTH, COUNT * LENGTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * COUNT * LENGTH, COUNT * LENGTH);
    wGm.SetGlobalBuffer((__gm__ float*)w, LENGTH);
    pipe.InitBuffer(rowQueue, 2, LENGTH * sizeof(float));
    pipe.InitBuffer(factorQueue, 2, LENGTH * sizeof(float));
    pipe.InitBuffer(resultQueue, 2, LENGTH * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (int32_t i = 0; i < COUNT - 1; i++) {
      Fetch(i);
      Multiply();
      Store(i);
    }
    Fetch(COUNT - 1);
    Multiply();
    Store(COUNT - 1);
  }

 private:
  __aicore__ inline void Fetch(int32_t i) {
    auto row = rowQueue.AllocTensor<float>();
    auto factors = factorQueue.AllocTensor<float>();
    DataCopy(row, xGm[i * LENGTH], LENGTH);
    DataCopy(factors, wGm, LENGTH);
    rowQueue.EnQue(row);
    factorQueue.EnQue(factors);
  }
  __aicore__ inline void Multiply() {
    auto row = rowQueue.DeQue<float>();
    auto factors = factorQueue.DeQue<float>();
    auto result = resultQueue.AllocTensor<float>();
    Mul(result, row, factors, LENGTH);
    resultQueue.EnQue(result);
    rowQueue.FreeTensor(row);
    factorQueue.FreeTensor(factors);
  }
  __aicore__ inline void Store(int32_t i) {
    auto result = resultQueue.DeQue<float>();
    DataCopy(yGm[i * LENGTH], result, LENGTH);
    resultQueue.FreeTensor(result);
  }

  TPipe pipe;
  TQue<TPosition::VECIN, 2> rowQueue, factorQueue;
  TQue<TPosition::VECOUT, 2> resultQueue;
  GlobalTensor<float> xGm, wGm, yGm;
};

extern "C" __global__ __aicore__ void row_for_all(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
  RowForAll op;
  op.Init(x, w, y);
  op.Process();
}
