// y = exp(x) w + x, buffers and flags by hand, tensors made once
// case: x=float32[512,512] w=float32[512,512] -> y=float32[512,512], 8 blocks
// motif: ping-pong, 2 alternatives
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 2048, SHARE = 512 * 512 / 8;

class TilesByHand {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR w, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
    wGm.SetGlobalBuffer((__gm__ float*)w + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
    pipe->InitBuffer(xBuf, TILE * sizeof(float));
    pipe->InitBuffer(wBuf, TILE * sizeof(float));
    pipe->InitBuffer(workBuf, TILE * sizeof(float));
    pipe->InitBuffer(yBuf, TILE * sizeof(float));
    x_ = xBuf.Get<float>();
    w_ = wBuf.Get<float>();
    work_ = workBuf.Get<float>();
    y_ = yBuf.Get<float>();
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < SHARE / TILE; i++) {
      CopyIn(i * TILE);
      Compute();
      CopyOut(i * TILE);
    }
  }

 private:
  template <HardEvent event>
  __aicore__ inline void Wait() {
    const event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
    SetFlag<event>(id);
    WaitFlag<event>(id);
  }
  __aicore__ inline void CopyIn(uint32_t at) {
    DataCopy(x_, xGm[at], TILE);
    DataCopy(w_, wGm[at], TILE);
    Wait<HardEvent::MTE2_V>();
  }
  __aicore__ inline void Compute() {
    Exp(work_, x_, TILE);
    PipeBarrier<PIPE_V>();
    Mul(work_, work_, w_, TILE);
    PipeBarrier<PIPE_V>();
    Add(y_, work_, x_, TILE);
    Wait<HardEvent::V_MTE3>();
  }
  __aicore__ inline void CopyOut(uint32_t at) {
    DataCopy(yGm[at], y_, TILE);
    Wait<HardEvent::MTE3_MTE2>();
  }
  TBuf<TPosition::VECCALC> xBuf, wBuf, workBuf, yBuf;
  LocalTensor<float> x_, w_, work_, y_;
  GlobalTensor<float> xGm, wGm, yGm;
};

extern "C" __global__ __aicore__ void tiles_by_hand(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
  TPipe pipe;
  TilesByHand op;
  op.Init(x, w, y, &pipe);
  op.Process();
}
