// y = 2x, with flags besides the queues "to be safe"
// case: x=float16[2048,512] -> y=float16[2048,512], 8 blocks
// class: redundant_sync
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 8192, SHARE = 2048 * 512 / 8;

extern "C" __global__ __aicore__ void flags_and_queues(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  GlobalTensor<half> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * SHARE);
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  event_t done = static_cast<event_t>(pipe.FetchEventID(HardEvent::MTE3_MTE2));
  for (int32_t i = 0; i < SHARE / TILE; i++) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, xGm[i * TILE], TILE);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>();
    Muls(b, a, (half)2.0f, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<half>();
    DataCopy(yGm[i * TILE], b, TILE);
    out.FreeTensor(b);
    SetFlag<HardEvent::MTE3_MTE2>(done);
    WaitFlag<HardEvent::MTE3_MTE2>(done);
  }
}
