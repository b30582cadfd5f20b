// y = (x - mean) / deviation * 0.75 + 0.25 of each row; functions load, compute and store it, for float and for half
// case: x=float32[256,1024] -> y=float32[256,1024], 8 blocks
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 1024, SHARE = 256 / 8;
constexpr float PART = 1.0f / WIDTH;

template <typename T>
class RowsNormed {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    source.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * SHARE * WIDTH);
    target.SetGlobalBuffer((__gm__ T*)y + GetBlockIdx() * SHARE * WIDTH);
    pipe->InitBuffer(rowQueue, 2, WIDTH * sizeof(T));
    pipe->InitBuffer(outQueue, 2, WIDTH * sizeof(T));
    pipe->InitBuffer(wide, WIDTH * sizeof(float));
    pipe->InitBuffer(work, WIDTH * sizeof(float));
  }
  __aicore__ inline void Process() {
    uint32_t offset = 0;
    for (uint32_t i = 0; i < SHARE; ++i) {
      Load(offset, WIDTH);
      Norm(WIDTH);
      Store(offset, WIDTH);
      offset += WIDTH;
    }
  }

 private:
  __aicore__ inline void Load(uint32_t offset, uint32_t size) {
    LocalTensor<T> in = rowQueue.template AllocTensor<T>();
    DataCopy(in, source[offset], size);
    rowQueue.EnQue(in);
    LocalTensor<T> given = rowQueue.template DeQue<T>();
    LocalTensor<float> row = wide.Get<float>();
    if constexpr (IsSameType<T, float>::value) {
      Adds(row, given, 0.0f, size);
    } else {
      Cast(row, given, RoundMode::CAST_NONE, size);
    }
    PipeBarrier<PIPE_V>();
    rowQueue.FreeTensor(given);
  }
  __aicore__ inline void Norm(uint32_t size) {
    LocalTensor<float> row = wide.Get<float>();
    LocalTensor<float> room = work.Get<float>();
    Muls(room, row, PART, size);
    PipeBarrier<PIPE_V>();
    ReduceSum(room, room, room, size);
    Wait();
    float mean = room.GetValue(0);
    Adds(row, row, -mean, size);
    PipeBarrier<PIPE_V>();
    Mul(room, row, row, size);
    PipeBarrier<PIPE_V>();
    ReduceSum(room, room, room, size);
    Wait();
    float factor = 1.0f / sqrt(room.GetValue(0) * PART);
    Muls(row, row, factor, size);
    PipeBarrier<PIPE_V>();
    Muls(room, row, 0.75f, size);
    PipeBarrier<PIPE_V>();
    LocalTensor<T> out = outQueue.template AllocTensor<T>();
    if constexpr (IsSameType<T, float>::value) {
      Adds(out, room, 0.25f, size);
    } else {
      Adds(row, room, 0.25f, size);
      PipeBarrier<PIPE_V>();
      Cast(out, row, RoundMode::CAST_RINT, size);
    }
    outQueue.EnQue(out);
  }
  __aicore__ inline void Wait() {
    event_t known = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(known);
    WaitFlag<HardEvent::V_S>(known);
  }
  __aicore__ inline void Store(uint32_t offset, uint32_t size) {
    LocalTensor<T> out = outQueue.template DeQue<T>();
    DataCopy(target[offset], out, size);
    outQueue.FreeTensor(out);
  }
  TQue<QuePosition::VECIN, 2> rowQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  TBuf<QuePosition::VECCALC> wide, work;
  GlobalTensor<T> source, target;
};

extern "C" __global__ __aicore__ void rows_normed(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  RowsNormed<float> op;
  op.Init(x, y, &pipe);
  op.Process();
}
