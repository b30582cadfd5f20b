// y = x / sqrt(mean(x x) + 1) of each row, the mean's factor in front of the sum
// case: x=float32[64,2048] -> y=float32[64,2048], 8 blocks
// motif: scale-behind-sum, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 2048, SHARE = 64 / 8;

class Normalized {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in, 2, WIDTH * sizeof(float));
    pipe->InitBuffer(out, 2, WIDTH * sizeof(float));
    pipe->InitBuffer(squares, WIDTH * sizeof(float));
    pipe->InitBuffer(room, WIDTH * sizeof(float));
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WIDTH);
  }
  __aicore__ inline void Run() {
    for (uint32_t row = 0; row < SHARE; row++) {
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopy(a, xGm[row * WIDTH], WIDTH);
      in.EnQue(a);
      Row();
      LocalTensor<float> b = out.DeQue<float>();
      DataCopy(yGm[row * WIDTH], b, WIDTH);
      out.FreeTensor(b);
    }
  }

 private:
  __aicore__ inline void RowReduceSum(const LocalTensor<float>& sum, const LocalTensor<float>& of) {
    ReduceSum<float>(sum, of, room.Get<float>(), WIDTH);
    PipeBarrier<PIPE_V>();
  }
  __aicore__ inline void Row() {
    LocalTensor<float> a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    LocalTensor<float> square = squares.Get<float>();
    Mul(square, a, a, WIDTH);
    PipeBarrier<PIPE_V>();
    Muls(square, square, share, WIDTH);
    PipeBarrier<PIPE_V>();
    RowReduceSum(square, square);
    Adds(square, square, 1.0f, 1);
    PipeBarrier<PIPE_V>();
    Sqrt(square, square, 1);
    event_t got = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(got);
    WaitFlag<HardEvent::V_S>(got);
    const float factor = 1.0f / square.GetValue(0);
    Muls(b, a, factor, WIDTH);
    in.FreeTensor(a);
    out.EnQue(b);
  }
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> squares, room;
  GlobalTensor<float> xGm, yGm;
  float share = 1.0f / WIDTH;
};

extern "C" __global__ __aicore__ void mean_of_squares(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Normalized normalized;
  normalized.Init(x, y, &pipe);
  normalized.Run();
}
