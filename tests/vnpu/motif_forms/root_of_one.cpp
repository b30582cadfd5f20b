// y = x / sqrt(mean(x x) + 1) of each row, the mean, its root and the reciprocal by instructions of one element
// case: x=float32[512,256] -> y=float32[512,256], 8 blocks
// motif: one-element, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 256, SHARE = 512 / 8, ROWS = 16;
constexpr int32_t SINGLE = 1;

class Scaled {
 public:
  __aicore__ inline Scaled(GM_ADDR x, GM_ADDR y, TPipe& pipe) {
    pipe.InitBuffer(in, 2, ROWS * WIDTH * sizeof(float));
    pipe.InitBuffer(out, 2, ROWS * WIDTH * sizeof(float));
    pipe.InitBuffer(scratch, WIDTH * sizeof(float));
    pipe.InitBuffer(spare, WIDTH * sizeof(float));
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WIDTH);
  }
  __aicore__ inline void Process() {
    for (uint32_t row = 0; row < SHARE; row += ROWS) {
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopy(a, xGm[row * WIDTH], ROWS * WIDTH);
      in.EnQue(a);
      a = in.DeQue<float>();
      LocalTensor<float> b = out.AllocTensor<float>();
      for (uint32_t r = 0; r < ROWS; r++) {
        OneRow(b[r * WIDTH], a[r * WIDTH]);
      }
      in.FreeTensor(a);
      out.EnQue(b);
      b = out.DeQue<float>();
      DataCopy(yGm[row * WIDTH], b, ROWS * WIDTH);
      out.FreeTensor(b);
    }
  }

 private:
  __aicore__ inline void OneRow(const LocalTensor<float>& b, const LocalTensor<float>& a) {
    LocalTensor<float> squares = scratch.Get<float>();
    LocalTensor<float> work = spare.Get<float>();
    Mul(squares, a, a, WIDTH);
    PipeBarrier<PIPE_V>();
    ReduceSum(squares[8], squares, work, WIDTH);
    PipeBarrier<PIPE_V>();
    Muls(squares[8], squares[8], 1.0f / WIDTH, SINGLE);
    PipeBarrier<PIPE_V>();
    Adds(squares[8], squares[8], 1.0f, SINGLE);
    Duplicate(work, 1.0f, SINGLE);
    PipeBarrier<PIPE_V>();
    Sqrt(squares[8], squares[8], SINGLE);
    PipeBarrier<PIPE_V>();
    Div(work, work, squares[8], SINGLE);
    event_t computed = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(computed);
    WaitFlag<HardEvent::V_S>(computed);
    const float factor = work.GetValue(0);
    event_t taken = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V));
    SetFlag<HardEvent::S_V>(taken);
    WaitFlag<HardEvent::S_V>(taken);
    Muls(b, a, factor, WIDTH);
    PipeBarrier<PIPE_V>();
  }
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> scratch, spare;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void root_of_one(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Scaled scaled(x, y, pipe);
  scaled.Process();
}
