// a row and the sum of what came before it: each row is filled with its number, in one of two ways, to be added to
// case: x=float32[8,64] w=float32[256] -> y=float32[512,256], 8 blocks
// motif: scalar-operand, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 256, ROWS = 64;

template <typename T>
class RunningRows {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR w, GM_ADDR y, TPipe* pipe) {
    source.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * ROWS);
    weights.SetGlobalBuffer((__gm__ float*)w);
    target.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * WIDTH);
    pipe->InitBuffer(numberQueue, 1, ROWS * sizeof(T));
    pipe->InitBuffer(rowQueue, 1, WIDTH * sizeof(float));
    pipe->InitBuffer(outQueue, 2, WIDTH * sizeof(float));
    pipe->InitBuffer(nowBuf, WIDTH * sizeof(float));
  }
  __aicore__ inline void Process() {
    LocalTensor<T> numbers = numberQueue.AllocTensor<T>();
    DataCopy(numbers, source, ROWS);
    numberQueue.EnQue(numbers);
    numbers = numberQueue.DeQue<T>();
    LocalTensor<float> last = rowQueue.AllocTensor<float>();
    DataCopy(last, weights, WIDTH);
    rowQueue.EnQue(last);
    last = rowQueue.DeQue<float>();
    LocalTensor<float> now = nowBuf.Get<float>();
    event_t loaded = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_S));
    SetFlag<HardEvent::MTE2_S>(loaded);
    WaitFlag<HardEvent::MTE2_S>(loaded);
    for (uint32_t i = 0; i < ROWS; i++) {
      if constexpr (std::is_same<T, bfloat16_t>::value) {
        Duplicate(now, ToFloat(numbers.GetValue(i)), WIDTH);
      } else {
        Duplicate(now, static_cast<float>(numbers.GetValue(i)), WIDTH);
      }
      PipeBarrier<PIPE_V>();
      Add(now, now, last, WIDTH);
      PipeBarrier<PIPE_V>();
      LocalTensor<float> out = outQueue.AllocTensor<float>();
      Exp(out, now, WIDTH);
      outQueue.EnQue(out);
      out = outQueue.DeQue<float>();
      DataCopy(target[i * WIDTH], out, WIDTH);
      outQueue.FreeTensor(out);
      DataCopy(last, now, WIDTH);
      PipeBarrier<PIPE_V>();
    }
    rowQueue.FreeTensor(last);
    numberQueue.FreeTensor(numbers);
  }

 private:
  TQue<QuePosition::VECIN, 1> numberQueue, rowQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  TBuf<QuePosition::VECCALC> nowBuf;
  GlobalTensor<T> source;
  GlobalTensor<float> weights, target;
};

extern "C" __global__ __aicore__ void running_rows(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
  TPipe pipe;
  RunningRows<float> op;
  op.Init(x, w, y, &pipe);
  op.Process();
}
