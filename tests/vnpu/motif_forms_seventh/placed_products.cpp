// y = sum over k of x[k] w[k] by rows, the products by parts and summed up behind a flag
// case: x=float32[4,64,192] w=float32[4,64,192] -> y=float32[64,192], 4 blocks
// motif: fused-multiply-add, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TERMS = 4, LENGTH = 192, ALL = 64 * LENGTH, ROWS = 64 / 4, PART = 64;

class PlacedProducts {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR w, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * LENGTH);
    wGm.SetGlobalBuffer((__gm__ float*)w + GetBlockIdx() * ROWS * LENGTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * LENGTH);
    pipe->InitBuffer(xBuf, ROWS * LENGTH * sizeof(float));
    pipe->InitBuffer(wBuf, ROWS * LENGTH * sizeof(float));
    pipe->InitBuffer(productBuf, ROWS * LENGTH * sizeof(float));
    pipe->InitBuffer(sumBuf, ROWS * LENGTH * sizeof(float));
    x_ = xBuf.Get<float>();
    w_ = wBuf.Get<float>();
    product = productBuf.Get<float>();
    sum = sumBuf.Get<float>();
  }
  __aicore__ inline void Process() {
    Duplicate(sum, 0.0f, ROWS * LENGTH);
    PipeBarrier<PIPE_V>();
    for (uint32_t k = 0; k < TERMS; k++) {
      Set<HardEvent::V_MTE2>();
      DataCopy(x_, xGm[k * ALL], ROWS * LENGTH);
      DataCopy(w_, wGm[k * ALL], ROWS * LENGTH);
      Set<HardEvent::MTE2_V>();
      for (uint32_t part = 0; part < LENGTH / PART - 1; part++) {
        Mul(product[part * PART], x_[part * PART], w_[part * PART], PART, ROWS, {1, 1, 1, 24, 24, 24});
      }
      Mul(product[LENGTH - PART], x_[LENGTH - PART], w_[LENGTH - PART], PART, ROWS, {1, 1, 1, 24, 24, 24});
      PipeBarrier<PIPE_V>();
      SetFlag<HardEvent::V_S>(EVENT_ID0);
      WaitFlag<HardEvent::V_S>(EVENT_ID0);
      Add(sum, sum, product, ROWS * LENGTH);
      PipeBarrier<PIPE_V>();
    }
    Set<HardEvent::V_MTE3>();
    DataCopy(yGm, sum, ROWS * LENGTH);
  }

 private:
  template <HardEvent event>
  __aicore__ inline void Set() {
    const event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
    SetFlag<event>(id);
    WaitFlag<event>(id);
  }
  TBuf<TPosition::VECCALC> xBuf, wBuf, productBuf, sumBuf;
  LocalTensor<float> x_, w_, product, sum;
  GlobalTensor<float> xGm, wGm, yGm;
};

extern "C" __global__ __aicore__ void placed_products(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
  TPipe pipe;
  PlacedProducts op;
  op.Init(x, w, y, &pipe);
  op.Process();
}
