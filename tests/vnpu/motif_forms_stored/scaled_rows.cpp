// y[i] = x[i] / max(x[i]), m[i] = max(x[i]): a row and its largest value, stored one by one
// case: x=float32[512,40] -> y=float32[512,40] m=float32[512], 8 blocks
// motif: stored-together, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t ALL = 512, LENGTH = 40;

class ScaledRows {
 public:
  __aicore__ inline ScaledRows() {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR m, TPipe* pipe) {
    rows = ALL / GetBlockNum();
    const uint32_t first = rows * GetBlockIdx();
    xGm.SetGlobalBuffer((__gm__ float*)x + first * LENGTH, rows * LENGTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + first * LENGTH, rows * LENGTH);
    mGm.SetGlobalBuffer((__gm__ float*)m + first, rows);
    pipe->InitBuffer(xQueue, 2, LENGTH * sizeof(float));
    pipe->InitBuffer(yQueue, 2, LENGTH * sizeof(float));
    pipe->InitBuffer(mQueue, 2, 32);
    pipe->InitBuffer(work, 256);
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < rows; i++) {
      LocalTensor<float> loaded = xQueue.AllocTensor<float>();
      DataCopyPad(loaded, xGm[i * LENGTH], {1, LENGTH * sizeof(float), 0, 0, 0}, {false, 0, 0, 0});
      xQueue.EnQue(loaded);
      Compute();
      StoreRow(i);
      StoreLargest(i, 1);
    }
  }

 private:
  __aicore__ inline void Compute() {
    LocalTensor<float> x = xQueue.DeQue<float>(), y = yQueue.AllocTensor<float>(), m = mQueue.AllocTensor<float>();
    LocalTensor<float> w = work.Get<float>();
    ReduceMax(w, x, w, LENGTH);
    PipeBarrier<PIPE_V>();
    event_t there = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(there);
    WaitFlag<HardEvent::V_S>(there);
    const float largest = w.GetValue(0);
    event_t back = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V));
    SetFlag<HardEvent::S_V>(back);
    WaitFlag<HardEvent::S_V>(back);
    Duplicate(m, largest, 8);
    Muls(y, x, 1.0f / largest, LENGTH);
    xQueue.FreeTensor(x);
    yQueue.EnQue(y);
    mQueue.EnQue(m);
  }
  __aicore__ inline void StoreRow(uint32_t row) {
    LocalTensor<float> y = yQueue.DeQue<float>();
    DataCopyPad(yGm[row * LENGTH], y, {1, LENGTH * sizeof(float), 0, 0, 0});
    yQueue.FreeTensor(y);
  }
  __aicore__ inline void StoreLargest(uint32_t place, uint32_t count) {
    LocalTensor<float> m = mQueue.DeQue<float>();
    const DataCopyExtParams one{1, static_cast<uint32_t>(count * sizeof(float)), 0, 0, 0};
    DataCopyPad(mGm[place], m, one);
    mQueue.FreeTensor(m);
  }

  TQue<QuePosition::VECIN, 1> xQueue;
  TQue<QuePosition::VECOUT, 1> yQueue;
  TQue<QuePosition::VECOUT, 1> mQueue;
  TBuf<> work;
  GlobalTensor<float> xGm, yGm, mGm;
  uint32_t rows;
};

extern "C" __global__ __aicore__ void scaled_rows(GM_ADDR x, GM_ADDR y, GM_ADDR m) {
  TPipe pipe;
  ScaledRows op;
  op.Init(x, y, m, &pipe);
  op.Process();
}
