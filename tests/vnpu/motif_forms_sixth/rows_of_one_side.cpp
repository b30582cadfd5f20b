// the first elements of each row with 0.5 added to them, the others one: rows of a tensor that both sides of a choice declare
// case: x=float32[256,64] -> y=float32[256,64], 8 blocks
// motif: merged-rows, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 64, SHARE = 256 / 8, ROWS = 16, TILE = ROWS * WIDTH, PART = 40;

template <typename T>
class RowsOfOneSide {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    source.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * SHARE * WIDTH);
    target.SetGlobalBuffer((__gm__ T*)y + GetBlockIdx() * SHARE * WIDTH);
    pipe->InitBuffer(inQueue, 2, TILE * sizeof(T));
    pipe->InitBuffer(outQueue, 2, TILE * sizeof(T));
    pipe->InitBuffer(wideBuf, TILE * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < SHARE / ROWS; i++) {
      LocalTensor<T> in = inQueue.AllocTensor<T>();
      DataCopy(in, source[i * TILE], TILE);
      inQueue.EnQue(in);
      Compute();
      LocalTensor<T> out = outQueue.DeQue<T>();
      DataCopy(target[i * TILE], out, TILE);
      outQueue.FreeTensor(out);
    }
  }

 private:
  __aicore__ inline void Compute() {
    LocalTensor<T> in = inQueue.DeQue<T>();
    if constexpr (std::is_same<T, half>::value) {
      LocalTensor<T> out = outQueue.AllocTensor<T>();
      LocalTensor<float> wide = wideBuf.Get<float>();
      Cast(wide, in, RoundMode::CAST_NONE, TILE);
      PipeBarrier<PIPE_V>();
      Adds(wide, wide, 0.5f, TILE);
      PipeBarrier<PIPE_V>();
      Cast(out, wide, RoundMode::CAST_RINT, TILE);
      outQueue.EnQue(out);
    } else {
      LocalTensor<float> out = outQueue.AllocTensor<float>();
      Duplicate(out, 1.0f, TILE);
      PipeBarrier<PIPE_V>();
      for (uint32_t row = 0; row < ROWS; row++) {
        Adds(out[row * WIDTH], in[row * WIDTH], 0.5f, PART);
        PipeBarrier<PIPE_V>();
      }
      outQueue.EnQue(out);
    }
    inQueue.FreeTensor(in);
  }
  TQue<QuePosition::VECIN, 2> inQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  TBuf<QuePosition::VECCALC> wideBuf;
  GlobalTensor<T> source, target;
};

extern "C" __global__ __aicore__ void rows_of_one_side(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  RowsOfOneSide<float> op;
  op.Init(x, y, &pipe);
  op.Process();
}
