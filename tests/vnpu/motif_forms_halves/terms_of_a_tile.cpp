// y = sum over k of exp(x[k]), a tile at a time: the terms come through one buffer, with its first flag set in front
// case: x=float32[16,8,2048] -> y=float32[8,2048], 8 blocks
// motif: ping-pong, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TERMS = 16, ROWS = 8, TILE = 2048;

class TermsOfATile {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * TILE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * TILE);
    pipe->InitBuffer(termBuf, TILE * sizeof(float));
    pipe->InitBuffer(sumBuf, TILE * sizeof(float));
    loadedId = static_cast<event_t>(pipe->AllocEventID<HardEvent::MTE2_V>());
    takenId = static_cast<event_t>(pipe->AllocEventID<HardEvent::V_MTE2>());
    doneId = static_cast<event_t>(pipe->AllocEventID<HardEvent::V_MTE3>());
  }
  __aicore__ inline void Process() {
    LocalTensor<float> term = termBuf.Get<float>();
    LocalTensor<float> sum = sumBuf.Get<float>();
    Duplicate(sum, 0.0f, TILE);
    SetFlag<HardEvent::V_MTE2>(takenId);
    for (uint32_t k = 0; k < TERMS; k++) {
      WaitFlag<HardEvent::V_MTE2>(takenId);
      DataCopy(term, xGm[k * ROWS * TILE], TILE);
      SetFlag<HardEvent::MTE2_V>(loadedId);
      WaitFlag<HardEvent::MTE2_V>(loadedId);
      Exp(term, term, TILE);
      PipeBarrier<PIPE_V>();
      Add(sum, sum, term, TILE);
      SetFlag<HardEvent::V_MTE2>(takenId);
    }
    WaitFlag<HardEvent::V_MTE2>(takenId);
    SetFlag<HardEvent::V_MTE3>(doneId);
    WaitFlag<HardEvent::V_MTE3>(doneId);
    DataCopy(yGm, sum, TILE);
  }

 private:
  TBuf<TPosition::VECCALC> termBuf, sumBuf;
  GlobalTensor<float> xGm, yGm;
  event_t loadedId, takenId, doneId;
};

extern "C" __global__ __aicore__ void terms_of_a_tile(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TermsOfATile op;
  op.Init(x, y, &pipe);
  op.Process();
}
