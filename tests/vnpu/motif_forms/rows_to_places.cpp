// y[place[i]] = 3 x[i]: a short row a turn, loaded one behind the other and stored where a list says
// case: x=float32[512,24] place=int32[512] -> y=float32[512,24], 8 blocks
// motif: loaded-ahead, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr int64_t ALL = 512, LENGTH = 24;

template <typename T>
class RowsToPlaces {
 public:
  __aicore__ inline RowsToPlaces() {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR place, GM_ADDR y, TPipe* pipe) {
    count = ALL / GetBlockNum();
    first = count * GetBlockIdx();
    rowsGm.SetGlobalBuffer((__gm__ T*)x, ALL * LENGTH);
    placesGm.SetGlobalBuffer((__gm__ int32_t*)place + first, count);
    resultGm.SetGlobalBuffer((__gm__ T*)y, ALL * LENGTH);
    pipe->InitBuffer(rowQueue, 2, (LENGTH * sizeof(T) + 31) / 32 * 32);
    pipe->InitBuffer(resultQueue, 2, (LENGTH * sizeof(T) + 31) / 32 * 32);
  }
  __aicore__ inline void Process() {
    for (int64_t turn = 0; turn < count; ++turn) {
      const int32_t place = placesGm.GetValue(turn);
      if (place < 0) {
        continue;
      }
      CopyIn(first + turn, LENGTH);
      Compute(LENGTH);
      CopyOut(place, LENGTH);
    }
  }

 private:
  __aicore__ inline void CopyIn(int64_t row, uint32_t length) {
    const int64_t offset = row * LENGTH;
    LocalTensor<T> loaded = rowQueue.template AllocTensor<T>();
    const DataCopyExtParams whole{1, static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0};
    const DataCopyPadExtParams<T> without{false, 0, 0, 0};
    DataCopyPad(loaded, rowsGm[offset], whole, without);
    rowQueue.EnQue(loaded);
  }
  __aicore__ inline void Compute(uint32_t length) {
    LocalTensor<T> loaded = rowQueue.template DeQue<T>();
    LocalTensor<T> result = resultQueue.template AllocTensor<T>();
    Muls(result, loaded, static_cast<T>(3), length);
    rowQueue.FreeTensor(loaded);
    resultQueue.EnQue(result);
  }
  __aicore__ inline void CopyOut(int64_t row, uint32_t length) {
    LocalTensor<T> result = resultQueue.template DeQue<T>();
    const DataCopyExtParams whole{1, static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0};
    DataCopyPad(resultGm[row * LENGTH], result, whole);
    resultQueue.FreeTensor(result);
  }

  TQue<QuePosition::VECIN, 1> rowQueue;
  TQue<QuePosition::VECOUT, 1> resultQueue;
  GlobalTensor<T> rowsGm, resultGm;
  GlobalTensor<int32_t> placesGm;
  int64_t count, first;
};

extern "C" __global__ __aicore__ void rows_to_places(GM_ADDR x, GM_ADDR place, GM_ADDR y) {
  TPipe pipe;
  RowsToPlaces<float> op;
  op.Init(x, place, y, &pipe);
  op.Process();
}
