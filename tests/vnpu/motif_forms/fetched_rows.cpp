// y = x, a row a turn, times its factor; the number of the row and the factor are fetched by copies of one element
// case: x=float32[256,192] order=int32[256] scale=float32[256] -> y=float32[256,192], 8 blocks
// motif: single-value, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 192, SHARE = 256 / 8;

template <typename T>
class FetchedRows {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR order, GM_ADDR scale, GM_ADDR y, TPipe* pipe) {
    first = GetBlockIdx() * SHARE;
    source.SetGlobalBuffer((__gm__ T*)x);
    target.SetGlobalBuffer((__gm__ T*)y);
    numbers.SetGlobalBuffer((__gm__ int32_t*)order + first);
    factors.SetGlobalBuffer((__gm__ T*)scale + first);
    pipe->InitBuffer(rowQueue, 2, WIDTH * sizeof(T));
    pipe->InitBuffer(factorQueue, 2, 32);
    pipe->InitBuffer(outQueue, 2, WIDTH * sizeof(T));
    pipe->InitBuffer(numberRoom, 32);
    single.blockCount = 1;
    single.blockLen = sizeof(float);
    single.srcStride = 0;
    single.dstStride = 0;
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < SHARE; ++i) {
      const int32_t row = Number(i);
      Load(i, row);
      Scale();
      Store(i);
    }
  }

 private:
  __aicore__ inline int32_t Number(uint32_t i) {
    LocalTensor<int32_t> number = numberRoom.Get<int32_t>();
    DataCopyPadExtParams<int32_t> nothing{false, 0, 0, 0};
    DataCopyPad(number, numbers[i], single, nothing);
    event_t loaded = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_S));
    SetFlag<HardEvent::MTE2_S>(loaded);
    WaitFlag<HardEvent::MTE2_S>(loaded);
    int32_t row = number.GetValue(0);
    // No number is out of range, but who knows.
    return row < 0 ? 0 : row;
  }
  __aicore__ inline void Load(uint32_t i, int32_t row) {
    LocalTensor<T> values = rowQueue.AllocTensor<T>();
    LocalTensor<T> factor = factorQueue.AllocTensor<T>();
    DataCopy(values, source[row * WIDTH], WIDTH);
    DataCopyPad(factor, factors[i], {1, sizeof(T), 0, 0, 0}, DataCopyPadExtParams<T>{false, 0, 0, 0});
    rowQueue.EnQue(values);
    factorQueue.EnQue(factor);
  }
  __aicore__ inline void Scale() {
    LocalTensor<T> values = rowQueue.DeQue<T>();
    LocalTensor<T> factor = factorQueue.DeQue<T>();
    LocalTensor<T> out = outQueue.AllocTensor<T>();
    T by = factor.GetValue(0);
    Muls(out, values, by, WIDTH);
    rowQueue.FreeTensor(values);
    factorQueue.FreeTensor(factor);
    outQueue.EnQue(out);
  }
  __aicore__ inline void Store(uint32_t i) {
    LocalTensor<T> out = outQueue.DeQue<T>();
    DataCopy(target[(first + i) * WIDTH], out, WIDTH);
    outQueue.FreeTensor(out);
  }
  TQue<QuePosition::VECIN, 2> rowQueue, factorQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  TBuf<QuePosition::VECCALC> numberRoom;
  GlobalTensor<T> source, target, factors;
  GlobalTensor<int32_t> numbers;
  DataCopyExtParams single;
  uint32_t first;
};

extern "C" __global__ __aicore__ void fetched_rows(GM_ADDR x, GM_ADDR order, GM_ADDR scale, GM_ADDR y) {
  TPipe pipe;
  FetchedRows<float> op;
  op.Init(x, order, scale, y, &pipe);
  op.Process();
}
