// y = x of the rows that order says, scaled to a largest value of 1; a row a turn, which is read where an index says
// case: x=float32[256,192] order=int32[256] -> y=float32[256,192], 8 blocks
// motif: early-fetch, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 192, SHARE = 256 / 8;

class IndicesAhead {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR order, GM_ADDR y, TPipe* pipe) {
    first = GetBlockIdx() * SHARE;
    source.SetGlobalBuffer((__gm__ float*)x);
    target.SetGlobalBuffer((__gm__ float*)y + first * WIDTH);
    numbers.SetGlobalBuffer((__gm__ int32_t*)order + first);
    pipe->InitBuffer(rowQueue, 1, WIDTH * sizeof(float));
    pipe->InitBuffer(numberQueue, 1, SHARE * sizeof(int32_t));
    pipe->InitBuffer(outQueue, 2, WIDTH * sizeof(float));
    pipe->InitBuffer(largest, WIDTH * sizeof(float));
  }
  __aicore__ inline void Process() {
    LocalTensor<int32_t> number = numberQueue.AllocTensor<int32_t>();
    DataCopy(number, numbers, SHARE);
    event_t loaded = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_S));
    SetFlag<HardEvent::MTE2_S>(loaded);
    WaitFlag<HardEvent::MTE2_S>(loaded);
    int32_t row;
    for (uint32_t i = 0; i < SHARE; ++i) {
      row = number.GetValue(i);
      Load(row);
      Scale();
      Store(i);
    }
    numberQueue.FreeTensor(number);
  }

 private:
  __aicore__ inline void Load(int32_t row) {
    LocalTensor<float> values = rowQueue.AllocTensor<float>();
    DataCopy(values, source[row * WIDTH], WIDTH);
    rowQueue.EnQue(values);
  }
  __aicore__ inline void Scale() {
    LocalTensor<float> values = rowQueue.DeQue<float>();
    LocalTensor<float> out = outQueue.AllocTensor<float>();
    LocalTensor<float> most = largest.Get<float>();
    ReduceMax(most, values, out, WIDTH);
    event_t known = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(known);
    WaitFlag<HardEvent::V_S>(known);
    float factor = 1.0f / most.GetValue(0);
    Muls(out, values, factor, WIDTH);
    rowQueue.FreeTensor(values);
    outQueue.EnQue(out);
  }
  __aicore__ inline void Store(uint32_t i) {
    LocalTensor<float> out = outQueue.DeQue<float>();
    DataCopy(target[i * WIDTH], out, WIDTH);
    outQueue.FreeTensor(out);
  }
  TQue<QuePosition::VECIN, 1> rowQueue, numberQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  TBuf<QuePosition::VECCALC> largest;
  GlobalTensor<float> source, target;
  GlobalTensor<int32_t> numbers;
  uint32_t first;
};

extern "C" __global__ __aicore__ void indices_ahead(GM_ADDR x, GM_ADDR order, GM_ADDR y) {
  TPipe pipe;
  IndicesAhead op;
  op.Init(x, order, y, &pipe);
  op.Process();
}
