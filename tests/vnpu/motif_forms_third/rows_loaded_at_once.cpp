// y = x, a row a turn, with a sum of 0 and a largest value of 1; a function loads a row, waits for it and widens it
// case: x=float16[256,1024] -> y=float16[256,1024], 8 blocks
// motif: early-fetch, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 1024, SHARE = 256 / 8;

template <typename T, int BUFFERS = 1>
class RowsLoadedAtOnce {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    source.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * SHARE * WIDTH);
    target.SetGlobalBuffer((__gm__ T*)y + GetBlockIdx() * SHARE * WIDTH);
    pipe->InitBuffer(rowQueue, BUFFERS, WIDTH * sizeof(T));
    pipe->InitBuffer(outQueue, BUFFERS, WIDTH * sizeof(T));
    pipe->InitBuffer(wide, WIDTH * sizeof(float));
    pipe->InitBuffer(work, WIDTH * sizeof(float));
  }
  __aicore__ inline void Process() {
    uint32_t offset = 0;
    for (uint32_t i = 0; i < SHARE; ++i) {
      Row(offset, WIDTH);
      Scale();
      Store(offset, WIDTH);
      offset += WIDTH;
    }
  }

 private:
  __aicore__ inline void Row(uint32_t offset, uint32_t size) {
    LocalTensor<T> in = rowQueue.template AllocTensor<T>();
    DataCopy(in, source[offset], size);
    rowQueue.EnQue(in);
    LocalTensor<T> given = rowQueue.template DeQue<T>();
    LocalTensor<float> row = wide.Get<float>();
    Cast(row, given, RoundMode::CAST_NONE, size);
    rowQueue.FreeTensor(given);
  }
  __aicore__ inline void Scale() {
    LocalTensor<float> row = wide.Get<float>();
    LocalTensor<float> room = work.Get<float>();
    ReduceSum(room, row, room, WIDTH);
    Wait();
    float mean = room.GetValue(0) / WIDTH;
    Adds(row, row, -mean, WIDTH);
    ReduceMax(room, row, room, WIDTH);
    Wait();
    float factor = 1.0f / room.GetValue(0);
    Muls(row, row, factor, WIDTH);
    LocalTensor<T> out = outQueue.template AllocTensor<T>();
    Cast(out, row, RoundMode::CAST_RINT, WIDTH);
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
  TQue<QuePosition::VECIN, BUFFERS> rowQueue;
  TQue<QuePosition::VECOUT, BUFFERS> outQueue;
  TBuf<QuePosition::VECCALC> wide, work;
  GlobalTensor<T> source, target;
};

extern "C" __global__ __aicore__ void rows_loaded_at_once(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  RowsLoadedAtOnce<half> op;
  op.Init(x, y, &pipe);
  op.Process();
}
