// y = x^2, with flags that are waited for in functions
// case: x=float16[512,512] -> y=float16[512,512], 8 blocks
// motif: deferred-wait, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 2048, SHARE = 512 * 512 / 8;

template <HardEvent event>
__aicore__ inline void SetWait(HardEvent named) {
  event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(named));
  SetFlag<event>(id);
  WaitFlag<event>(id);
}

extern "C" __global__ __aicore__ void waits_in_functions(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  GlobalTensor<half> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * SHARE);
  for (uint32_t i = 0; i < SHARE / TILE; i++) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, xGm[i * TILE], TILE);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>();
    Mul(b, a, a, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<half>();
    DataCopy(yGm[i * TILE], b, TILE);
    SetWait<HardEvent::MTE3_MTE2>(HardEvent::MTE3_MTE2);
    out.FreeTensor(b);
  }
}
