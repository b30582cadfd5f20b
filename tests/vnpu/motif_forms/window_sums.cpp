// y[i] = sum of x[j], j from 8 i on, 16 rows (fewer at the end): a short row a turn, cast in place to be added
// case: x=float16[512,48] -> y=float16[64,48], 16 blocks
// motif: loaded-ahead, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t ALL = 512, CHANNELS = 48, WINDOW = 16, STRIDE = 8, ROOM = 256;

template <typename T, int32_t DEPTH>
class WindowSums {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    input.SetGlobalBuffer((__gm__ T*)x);
    output.SetGlobalBuffer((__gm__ T*)y);
    pipe->InitBuffer(rows, DEPTH, ROOM);
    pipe->InitBuffer(results, DEPTH, ROOM);
    pipe->InitBuffer(sums, ROOM);
    upper = ROOM / 2 / sizeof(T);
  }
  __aicore__ inline void Process() {
    for (int32_t window = GetBlockIdx(); window < ALL / STRIDE; window += GetBlockNum()) {
      Window(window * STRIDE, window * STRIDE + WINDOW < ALL ? window * STRIDE + WINDOW : ALL);
      Store(window);
    }
  }

 private:
  __aicore__ inline void Window(int32_t begin, int32_t end) {
    LocalTensor<float> sum = sums.Get<float>();
    Duplicate(sum, 0.0f, CHANNELS);
    for (int32_t i = begin; i < end; ++i) {
      Load(i * CHANNELS, CHANNELS);
      LocalTensor<T> row = rows.template DeQue<T>();
      LocalTensor<float> wide = row.template ReinterpretCast<float>();
      if constexpr (!std::is_same_v<T, float>) {
        Cast(wide, row[upper], RoundMode::CAST_NONE, CHANNELS);
        PipeBarrier<PIPE_V>();
      }
      Add(sum, sum, wide, CHANNELS);
      PipeBarrier<PIPE_V>();
      rows.FreeTensor(row);
    }
  }
  __aicore__ inline void Load(int64_t at, uint32_t length) {
    LocalTensor<T> row = rows.template AllocTensor<T>();
    DataCopyExtParams one{1, static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> without{false, 0, 0, 0};
    if constexpr (std::is_same_v<T, float>) {
      DataCopyPad(row, input[at], one, without);
    } else {
      DataCopyPad(row[upper], input[at], one, without);
    }
    rows.EnQue(row);
  }
  __aicore__ inline void Store(int64_t window) {
    LocalTensor<T> result = results.template AllocTensor<T>();
    Cast(result, sums.Get<float>(), RoundMode::CAST_RINT, CHANNELS);
    results.EnQue(result);
    result = results.template DeQue<T>();
    DataCopyPad(output[window * CHANNELS], result, {1, static_cast<uint32_t>(CHANNELS * sizeof(T)), 0, 0, 0});
    results.FreeTensor(result);
  }

  TQue<QuePosition::VECIN, DEPTH> rows;
  TQue<QuePosition::VECOUT, DEPTH> results;
  TBuf<QuePosition::VECCALC> sums;
  GlobalTensor<T> input, output;
  uint32_t upper;
};

extern "C" __global__ __aicore__ void window_sums(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  WindowSums<half, 2> op;
  op.Init(x, y, &pipe);
  op.Process();
}
