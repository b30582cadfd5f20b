// y = the sum of the squares of each row, taken to where it is stored by the scalar unit
// case: x=float32[1024,192] -> y=float32[1024], 8 blocks
// motif: result-in-place, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 192, SHARE = 1024 / 8, ROWS = 32;

template <typename T>
__aicore__ inline void Put(const LocalTensor<T>& all, uint32_t at, float value) {
  all.SetValue(at, static_cast<T>(value));
}

template <HardEvent EVENT>
__aicore__ inline event_t Event() {
  return static_cast<event_t>(GetTPipePtr()->FetchEventID(EVENT));
}

template <typename T, typename R>
class Squared {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in, 2, ROWS * WIDTH * sizeof(T));
    pipe->InitBuffer(out, 1, SHARE * sizeof(R));
    pipe->InitBuffer(squares, WIDTH * sizeof(float));
    xGm.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * SHARE * WIDTH);
    yGm.SetGlobalBuffer((__gm__ R*)y + GetBlockIdx() * SHARE);
  }
  __aicore__ inline void Process() {
    LocalTensor<R> sums = out.AllocTensor<R>();
    for (uint32_t row = 0; row < SHARE; row += ROWS) {
      LocalTensor<T> a = in.AllocTensor<T>();
      DataCopy(a, xGm[row * WIDTH], ROWS * WIDTH);
      in.EnQue(a);
      a = in.DeQue<T>();
      for (uint32_t r = 0; r < ROWS; r++) {
        One(sums, a[r * WIDTH], row + r);
      }
      in.FreeTensor(a);
    }
    SetFlag<HardEvent::S_MTE3>(EVENT_ID3);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID3);
    out.EnQue(sums);
    sums = out.DeQue<R>();
    DataCopy(yGm, sums, SHARE);
    out.FreeTensor(sums);
  }

 private:
  __aicore__ inline void One(const LocalTensor<R>& sums, const LocalTensor<T>& a, uint32_t at) {
    LocalTensor<float> square = squares.Get<float>();
    Mul(square, a, a, WIDTH);
    PipeBarrier<PIPE_V>();
    ReduceSum<float>(square, square, square, WIDTH);
    event_t there = Event<HardEvent::V_S>();
    SetFlag<HardEvent::V_S>(there);
    WaitFlag<HardEvent::V_S>(there);
    Put<R>(sums, at, square.GetValue(0));
    SetFlag<HardEvent::S_V>(EVENT_ID1);
    WaitFlag<HardEvent::S_V>(EVENT_ID1);
  }
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> squares;
  GlobalTensor<T> xGm;
  GlobalTensor<R> yGm;
};

extern "C" __global__ __aicore__ void sums_set_by_hand(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Squared<float, float> squared;
  squared.Init(x, y, &pipe);
  squared.Process();
}
