// y = sqrt(abs(x))
// case: x=float32[1024,512] -> y=float32[1024,512], 8 blocks
// class: serial_stages
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 4096, SHARE = 1024 * 512 / 8;

class WaitsForStore {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
    pipe.InitBuffer(buf, TILE * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (int32_t i = 0; i < SHARE / TILE; i++) {
      LocalTensor<float> t = buf.Get<float>();
      DataCopy(t, xGm[i * TILE], TILE);
      SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
      WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
      Abs(t, t, TILE);
      PipeBarrier<PIPE_V>();
      Sqrt(t, t, TILE);
      SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
      WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
      DataCopy(yGm[i * TILE], t, TILE);
      SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
      WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    }
  }

 private:
  TPipe pipe;
  TBuf<QuePosition::VECCALC> buf;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void waits_for_store(GM_ADDR x, GM_ADDR y) {
  WaitsForStore op;
  op.Init(x, y);
  op.Process();
}
