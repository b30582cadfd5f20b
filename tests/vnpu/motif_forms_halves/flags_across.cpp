// y = sqrt(|x| + 1) in place, with a flag that a turn sets and the next one waits for
// case: x=float32[512,512] -> y=float32[512,512], 8 blocks
// motif: ping-pong, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 2048, TURNS = 512 * 512 / 8 / TILE;

class FlagsAcross {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * TURNS * TILE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * TURNS * TILE);
    pipe->InitBuffer(tileBuf, TILE * sizeof(float));
    loadedId = static_cast<event_t>(pipe->AllocEventID<HardEvent::MTE2_V>());
    doneId = static_cast<event_t>(pipe->AllocEventID<HardEvent::V_MTE3>());
    storedId = static_cast<event_t>(pipe->AllocEventID<HardEvent::MTE3_MTE2>());
  }
  __aicore__ inline void Process() {
    LocalTensor<float> tile = tileBuf.Get<float>();
    for (uint32_t i = 0; i < TURNS; i++) {
      if (i != 0) {
        WaitFlag<HardEvent::MTE3_MTE2>(storedId);
      }
      DataCopy(tile, xGm[i * TILE], TILE);
      SetFlag<HardEvent::MTE2_V>(loadedId);
      WaitFlag<HardEvent::MTE2_V>(loadedId);
      Abs(tile, tile, TILE);
      PipeBarrier<PIPE_V>();
      Adds(tile, tile, 1.0f, TILE);
      PipeBarrier<PIPE_V>();
      Sqrt(tile, tile, TILE);
      SetFlag<HardEvent::V_MTE3>(doneId);
      WaitFlag<HardEvent::V_MTE3>(doneId);
      DataCopy(yGm[i * TILE], tile, TILE);
      if (i != TURNS - 1) {
        SetFlag<HardEvent::MTE3_MTE2>(storedId);
      }
    }
  }

 private:
  TBuf<TPosition::VECCALC> tileBuf;
  GlobalTensor<float> xGm, yGm;
  event_t loadedId, doneId, storedId;
};

extern "C" __global__ __aicore__ void flags_across(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  FlagsAcross op;
  op.Init(x, y, &pipe);
  op.Process();
}
