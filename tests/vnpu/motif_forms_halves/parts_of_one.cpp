// y = |x| - x x, tensors that are parts of one buffer, taken in each turn of two loops
// case: x=float32[512,512] -> y=float32[512,512], 8 blocks
// motif: ping-pong, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 512, ROWS = 64, PART = 4;

class PartsOfOne {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * WIDTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * WIDTH);
    pipe->InitBuffer(memory, 2 * PART * WIDTH * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (uint32_t half = 0; half < 2; half++) {
      for (uint32_t row = 0; row < ROWS / 2; row += PART) {
        Rows((half * ROWS / 2 + row) * WIDTH);
      }
    }
  }

 private:
  __aicore__ inline void Rows(uint32_t at) {
    LocalTensor<float> whole = memory.Get<float>();
    LocalTensor<float> in = whole[0];
    LocalTensor<float> out = whole[PART * WIDTH];
    event_t stored = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE3_MTE2));
    SetFlag<HardEvent::MTE3_MTE2>(stored);
    WaitFlag<HardEvent::MTE3_MTE2>(stored);
    DataCopy(in, xGm[at], PART * WIDTH);
    event_t loaded = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_V));
    SetFlag<HardEvent::MTE2_V>(loaded);
    WaitFlag<HardEvent::MTE2_V>(loaded);
    Abs(out, in, PART * WIDTH);
    Mul(in, in, in, PART * WIDTH);
    PipeBarrier<PIPE_V>();
    Sub(out, out, in, PART * WIDTH);
    event_t done = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_MTE3));
    SetFlag<HardEvent::V_MTE3>(done);
    WaitFlag<HardEvent::V_MTE3>(done);
    DataCopy(yGm[at], out, PART * WIDTH);
  }
  TBuf<TPosition::VECCALC> memory;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void parts_of_one(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  PartsOfOne op;
  op.Init(x, y, &pipe);
  op.Process();
}
