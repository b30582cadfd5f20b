// What vector cores of a mixed kernel pass by, as the cube core beside them does it; and the compiler's numbers of
// pipes.
#include "kernel_operator.h"

using namespace AscendC;

// The cube core writes its `value` 256 times, by L1; its vector cores make the same calls, which are not theirs.
extern "C" __global__ __mix__(1, 2) void filled(GM_ADDR out, uint32_t value) {
  TPipe pipe;
  TBuf<TPosition::A1> memory;
  pipe.InitBuffer(memory, 1024);
  LocalTensor<int32_t> l1 = memory.Get<int32_t>();
  GlobalTensor<int32_t> to;
  to.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(out));
  Fill(l1, InitConstValueParams<int32_t>(1, 32, 0, static_cast<int32_t>(value)));
  if ASCEND_IS_AIC {
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  }
  DataCopy(to, l1, 256);
}

template <pipe_t from, pipe_t to>
__aicore__ inline void flag_by_number() {
  set_flag(from, to, EVENT_ID1);
  wait_flag(from, to, EVENT_ID1);
}
extern "C" __global__ __cube__ void pipes_by_number(GM_ADDR) {
  flag_by_number<(pipe_t)10, (pipe_t)2>();
  flag_by_number<(pipe_t)2, PIPE_FIX>();
}
extern "C" __global__ __cube__ void no_such_pipe(GM_ADDR) { set_flag((pipe_t)8, (pipe_t)2, EVENT_ID1); }

// UB begins at address 0: its second block becomes as the first one.
extern "C" __global__ __vector__ void addresses_by_number(GM_ADDR out) {
  TPipe pipe;
  TBuf<> memory;
  pipe.InitBuffer(memory, 64);
  LocalTensor<float> ub = memory.Get<float>();
  GlobalTensor<float> to;
  to.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(out));
  Duplicate(ub, 5.0f, 8);
  PipeBarrier<PIPE_V>();
  copy_ubuf_to_ubuf((__ubuf__ float*)32, (__ubuf__ float*)0, 0, 1, 1, 0, 0);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(to, ub, 16);
}
