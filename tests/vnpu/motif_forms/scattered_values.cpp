// y[order[i]] = 2 x[i]: each value is stored by a copy of its own, which is waited for
// case: x=float32[512] order=int32[512] -> y=float32[512], 1 blocks
// motif: single-store, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COUNT = 512;

template <typename T>
class ScatteredValues {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR order, GM_ADDR y, TPipe* pipe) {
    values.SetGlobalBuffer((__gm__ T*)x, COUNT);
    places.SetGlobalBuffer((__gm__ int32_t*)order, COUNT);
    result.SetGlobalBuffer((__gm__ T*)y, COUNT);
    pipe->InitBuffer(room, 32);
  }
  __aicore__ inline void Process() {
    LocalTensor<T> one = room.Get<T>();
    const DataCopyParams params{1, static_cast<uint16_t>(sizeof(T)), 0, 0};
    for (int32_t i = 0; i < COUNT; ++i) {
      const int32_t place = places.GetValue(i);
      T value = values.GetValue(i);
      one.SetValue(0, value + value);
      Wait<HardEvent::S_MTE3>();
      DataCopyPad(result[place], one, params);
      Wait<HardEvent::MTE3_S>();
    }
  }

 private:
  template <HardEvent event>
  __aicore__ inline void Wait() {
    event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
    SetFlag<event>(id);
    WaitFlag<event>(id);
  }
  TBuf<QuePosition::VECCALC> room;
  GlobalTensor<T> values, result;
  GlobalTensor<int32_t> places;
};

extern "C" __global__ __aicore__ void scattered_values(GM_ADDR x, GM_ADDR order, GM_ADDR y) {
  TPipe pipe;
  ScatteredValues<float> op;
  op.Init(x, order, y, &pipe);
  op.Process();
}
