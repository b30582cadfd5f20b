// y = x * w + b, w and b loaded and cast anew for each row, in methods that the loop over rows calls
// case: x=float16[1024,512] w=float16[512] b=float16[512] -> y=float16[1024,512], 8 blocks
// motif: done-once, 3 alternatives
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 512, ROWS = 128;

template <typename T>
__aicore__ inline void LoadRow(const LocalTensor<T>& to, const GlobalTensor<T>& of, uint32_t count) {
  DataCopy(to, of, count);
}

template <typename T>
class WeightedRows {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR w, GM_ADDR b, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(loaded_, 1, WIDTH * sizeof(T));
    pipe->InitBuffer(stored_, 1, WIDTH * sizeof(T));
    pipe->InitBuffer(weights_, WIDTH * sizeof(T));
    pipe->InitBuffer(wide_, 2 * WIDTH * sizeof(float));
    xGm_.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * ROWS * WIDTH);
    yGm_.SetGlobalBuffer((__gm__ T*)y + GetBlockIdx() * ROWS * WIDTH);
    wGm_.SetGlobalBuffer((__gm__ T*)w);
    bGm_.SetGlobalBuffer((__gm__ T*)b);
    width_ = WIDTH;
  }
  __aicore__ inline void Process() {
    const LocalTensor<T> weights = weights_.template Get<T>();
    LoadRow(weights, wGm_, width_);
    const event_t arrived = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_V));
    SetFlag<HardEvent::MTE2_V>(arrived);
    WaitFlag<HardEvent::MTE2_V>(arrived);
    for (uint32_t row = 0; row < ROWS; row++) {
      Row(row * width_, weights);
    }
  }

 private:
  __aicore__ inline void Row(uint32_t at, const LocalTensor<T>& weights) {
    LocalTensor<float> wide = wide_.Get<float>();
    LocalTensor<float> second = wide[WIDTH];
    LocalTensor<T> x = loaded_.template AllocTensor<T>();
    LoadRow(x, xGm_[at], width_);
    loaded_.EnQue(x);
    auto row = loaded_.template DeQue<T>();
    Cast(wide, row, RoundMode::CAST_NONE, width_);
    PipeBarrier<PIPE_V>();
    loaded_.FreeTensor(row);
    Cast(second, weights, RoundMode::CAST_NONE, width_);
    PipeBarrier<PIPE_V>();
    Mul(wide, wide, second, width_);
    PipeBarrier<PIPE_V>();
    LocalTensor<T> bias = loaded_.template AllocTensor<T>();
    LoadRow(bias, bGm_, width_);
    loaded_.EnQue(bias);
    auto offsets = loaded_.template DeQue<T>();
    Cast(second, offsets, RoundMode::CAST_NONE, width_);
    PipeBarrier<PIPE_V>();
    loaded_.FreeTensor(offsets);
    Add(wide, wide, second, width_);
    PipeBarrier<PIPE_V>();
    LocalTensor<T> y = stored_.template AllocTensor<T>();
    Cast(y, wide, RoundMode::CAST_RINT, width_);
    stored_.EnQue(y);
    y = stored_.template DeQue<T>();
    DataCopy(yGm_[at], y, width_);
    stored_.FreeTensor(y);
  }

  TQue<QuePosition::VECIN, 1> loaded_;
  TQue<QuePosition::VECOUT, 1> stored_;
  TBuf<TPosition::VECCALC> weights_, wide_;
  GlobalTensor<T> xGm_, wGm_, bGm_, yGm_;
  uint32_t width_;
};

extern "C" __global__ __aicore__ void weights_a_row(GM_ADDR x, GM_ADDR w, GM_ADDR b, GM_ADDR y) {
  TPipe pipe;
  WeightedRows<half> rows;
  rows.Init(x, w, b, y, &pipe);
  rows.Process();
}
