// y = exp(x) w, tensors taken from queues once and kept, as buffers by hand would be
// case: x=float32[512,512] w=float32[512,512] -> y=float32[512,512], 8 blocks
// motif: ping-pong, 2 alternatives
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 2048, SHARE = 512 * 512 / 8;

class KeptTensors {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR w, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
    wGm.SetGlobalBuffer((__gm__ float*)w + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
    pipe->InitBuffer(xQueue, 1, TILE * sizeof(float));
    pipe->InitBuffer(wQueue, 2, TILE * sizeof(float));
    pipe->InitBuffer(yQueue, 1, TILE * sizeof(float));
    x_ = xQueue.AllocTensor<float>();
    w_ = wQueue.AllocTensor<float>();
    y_ = yQueue.AllocTensor<float>();
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < SHARE / TILE; i++) {
      DataCopy(x_, xGm[i * TILE], TILE);
      DataCopy(w_, wGm[i * TILE], TILE);
      Wait<HardEvent::MTE2_V>();
      Exp(x_, x_, TILE);
      PipeBarrier<PIPE_V>();
      Mul(y_, x_, w_, TILE);
      Wait<HardEvent::V_MTE3>();
      DataCopy(yGm[i * TILE], y_, TILE);
      Wait<HardEvent::MTE3_MTE2>();
    }
    xQueue.FreeTensor(x_);
    wQueue.FreeTensor(w_);
    yQueue.FreeTensor(y_);
  }

 private:
  template <HardEvent event>
  __aicore__ inline void Wait() {
    const event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
    SetFlag<event>(id);
    WaitFlag<event>(id);
  }
  TQue<QuePosition::VECIN, 1> xQueue;
  TQue<QuePosition::VECIN, 2> wQueue;
  TQue<QuePosition::VECOUT, 1> yQueue;
  LocalTensor<float> x_, w_, y_;
  GlobalTensor<float> xGm, wGm, yGm;
};

extern "C" __global__ __aicore__ void kept_tensors(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
  TPipe pipe;
  KeptTensors op;
  op.Init(x, w, y, &pipe);
  op.Process();
}
