// exp(x) + x in halves of one buffer, in turn; flags for the halves are set and waited for again for each row
// case: x=float32[64,4096] -> y=float32[64,4096], 8 blocks
// motif: deferred-wait, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 4096, ROWS = 64 / 8, TILE = 2048;

class HalvesARow {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    source.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * WIDTH);
    target.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * WIDTH);
    pipe->InitBuffer(buffer, 4 * TILE * sizeof(float));
    both = buffer.Get<float>();
  }
  __aicore__ inline void Process() {
    for (uint32_t row = 0; row < ROWS; row++) {
      half = 0;
      SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
      SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
      for (uint32_t i = 0; i < WIDTH / TILE; i++) {
        id = half ? EVENT_ID1 : EVENT_ID0;
        Tile(row * WIDTH + i * TILE);
        half = 1 - half;
      }
      WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
      WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID1);
    }
  }

 private:
  __aicore__ inline void Tile(uint32_t at) {
    LocalTensor<float> given = both[half * 2 * TILE];
    LocalTensor<float> made = both[half * 2 * TILE + TILE];
    WaitFlag<HardEvent::MTE3_MTE2>(id);
    DataCopy(given, source[at], TILE);
    SetFlag<HardEvent::MTE2_V>(id);
    WaitFlag<HardEvent::MTE2_V>(id);
    Exp(made, given, TILE);
    PipeBarrier<PIPE_V>();
    Add(made, made, given, TILE);
    SetFlag<HardEvent::V_MTE3>(id);
    WaitFlag<HardEvent::V_MTE3>(id);
    DataCopy(target[at], made, TILE);
    SetFlag<HardEvent::MTE3_MTE2>(id);
  }
  TBuf<QuePosition::VECCALC> buffer;
  LocalTensor<float> both;
  GlobalTensor<float> source, target;
  event_t id = EVENT_ID0;
  uint32_t half = 0;
};

extern "C" __global__ __aicore__ void halves_a_row(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  HalvesARow op;
  op.Init(x, y, &pipe);
  op.Process();
}
