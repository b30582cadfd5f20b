// y = (x + 1) * 100 / (the largest |x + 1| of its row), one row of a tile after the other
// case: x=float32[1024,200] -> y=float32[1024,200], 8 blocks
// motif: row-stages, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t WIDTH = 200, SHARE = 1024 / 8, ROWS = 20;

class ScaledRows {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in, 2, ROWS * WIDTH * sizeof(float));
    pipe->InitBuffer(out, 2, ROWS * WIDTH * sizeof(float));
    pipe->InitBuffer(sizes, ROWS * WIDTH * sizeof(float));
    pipe->InitBuffer(scratch, WIDTH * sizeof(float));
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WIDTH);
  }
  __aicore__ inline void Process() {
    for (int32_t at = 0; at < SHARE; at += ROWS) {
      const int32_t rows = SHARE - at < ROWS ? SHARE - at : ROWS;
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopy(a, xGm[at * WIDTH], rows * WIDTH);
      in.EnQue(a);
      Compute(rows);
      LocalTensor<float> b = out.DeQue<float>();
      DataCopy(yGm[at * WIDTH], b, rows * WIDTH);
      out.FreeTensor(b);
    }
  }

 private:
  __aicore__ inline void RowReduceMax(const LocalTensor<float>& row, int32_t count, float& largest) {
    ReduceMax<float>(row, row, row, count, false);
    event_t there = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(there);
    WaitFlag<HardEvent::V_S>(there);
    largest = row.GetValue(0);
  }
  __aicore__ inline void Compute(int32_t rows) {
    LocalTensor<float> a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    LocalTensor<float> size = sizes.Get<float>();
    LocalTensor<float> one = scratch.Get<float>();
    for (int32_t row = 0; row < rows; ++row) {
      const int32_t offset = row * WIDTH;
      Adds(one, a[offset], 1.0f, WIDTH);
      PipeBarrier<PIPE_V>();
      if (rows > 0) {
        Abs(size[offset], one, WIDTH);
      }
      PipeBarrier<PIPE_V>();
      float largest = 0;
      RowReduceMax(size[offset], WIDTH, largest);
      const float factor = 100.0f / largest;
      Adds(one, a[offset], 1.0f, WIDTH);
      PipeBarrier<PIPE_V>();
      Muls(b[offset], one, factor, WIDTH);
      PipeBarrier<PIPE_V>();
    }
    in.FreeTensor(a);
    out.EnQue(b);
  }
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> sizes, scratch;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void rows_scaled(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  ScaledRows scaled;
  scaled.Init(x, y, &pipe);
  scaled.Process();
}
