// One buffer in, one out, and every dependence by an explicit flag: each line can be taken away by a test.
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void twice(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(t, tiling);
  TPipe pipe;
  TBuf<TPosition::VECCALC> xBuf, yBuf;
  pipe.InitBuffer(xBuf, t.tile * sizeof(DTYPE_X));
  pipe.InitBuffer(yBuf, t.tile * sizeof(DTYPE_X));
  LocalTensor<DTYPE_X> xLocal = xBuf.Get<DTYPE_X>();
  LocalTensor<DTYPE_X> yLocal = yBuf.Get<DTYPE_X>();
  GlobalTensor<DTYPE_X> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ DTYPE_X*)x);
  yGm.SetGlobalBuffer((__gm__ DTYPE_X*)y);
  const uint32_t begin = GetBlockIdx() * t.perCore;
  const uint32_t end = begin + t.perCore < t.total ? begin + t.perCore : t.total;
  for (uint32_t at = begin; at < end; at += t.tile) {
    const uint32_t count = end - at < t.tile ? end - at : t.tile;
    DataCopyExtParams params{1, static_cast<uint32_t>(count * sizeof(DTYPE_X)), 0, 0, 0};
    DataCopyPad(xLocal, xGm[at], params, DataCopyPadExtParams<DTYPE_X>{false, 0, 0, 0});
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Add(yLocal, xLocal, xLocal, count);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopyPad(yGm[at], yLocal, params);
    PipeBarrier<PIPE_ALL>();
  }
}
