// y = (x - mean) / sqrt(variance + 1) + 9 of each row; scratch of one row, sums that a function returns
// case: x=float16[512,384] -> y=float32[512,384], 8 blocks
// motif: row-stages, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 384, SHARE = 512 / 8, ROWS = 16;

class CentredRows {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in, 2, ROWS * WIDTH * sizeof(half));
    pipe->InitBuffer(out, 2, ROWS * WIDTH * sizeof(float));
    pipe->InitBuffer(first, WIDTH * sizeof(float));
    pipe->InitBuffer(second, ROWS * WIDTH * sizeof(float));
    xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * SHARE * WIDTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WIDTH);
  }
  __aicore__ inline void Process() {
    for (uint32_t row = 0; row < SHARE; row += ROWS) {
      LocalTensor<half> a = in.AllocTensor<half>();
      DataCopy(a, xGm[row * WIDTH], ROWS * WIDTH);
      in.EnQue(a);
      Rows(in.DeQue<half>());
      LocalTensor<float> b = out.DeQue<float>();
      DataCopy(yGm[row * WIDTH], b, ROWS * WIDTH);
      out.FreeTensor(b);
    }
  }

 private:
  __aicore__ inline float SumReduced(const LocalTensor<float>& of, uint32_t count) {
    ReduceSum(of, of, of, count);
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    return of.GetValue(0);
  }
  __aicore__ inline void Rows(LocalTensor<half> a) {
    LocalTensor<float> b = out.AllocTensor<float>();
    LocalTensor<float> row = first.Get<float>();
    LocalTensor<float> all = second.Get<float>();
    Cast(all, a, RoundMode::CAST_NONE, ROWS * WIDTH);
    PipeBarrier<PIPE_V>();
    in.FreeTensor(a);
    for (uint32_t r = 0; r < ROWS; r++) {
      const uint32_t place = r * WIDTH;
      Muls(row, all[place], 1.0f / WIDTH, WIDTH);
      PipeBarrier<PIPE_V>();
      const float mean = SumReduced(row, WIDTH);
      event_t taken = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V));
      SetFlag<HardEvent::S_V>(taken);
      WaitFlag<HardEvent::S_V>(taken);
      Adds(all[place], all[place], -mean, WIDTH);
      PipeBarrier<PIPE_V>();
      Mul(row, all[place], all[place], WIDTH);
      PipeBarrier<PIPE_V>();
      Muls(row, row, 1.0f / WIDTH, WIDTH);
      PipeBarrier<PIPE_V>();
      float variance = SumReduced(row, WIDTH);
      const float factor = 1 / sqrt(variance + 1.0f);
      Muls(b[place], all[place], factor, WIDTH);
      PipeBarrier<PIPE_V>();
      Adds(b[place], b[place], 9.0f, WIDTH);
      PipeBarrier<PIPE_V>();
    }
    out.EnQue(b);
  }
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> first, second;
  GlobalTensor<half> xGm;
  GlobalTensor<float> yGm;
};

extern "C" __global__ __aicore__ void rows_normalized(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  CentredRows centred;
  centred.Init(x, y, &pipe);
  centred.Process();
}
