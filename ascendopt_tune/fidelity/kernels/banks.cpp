// 1000 times Add on 64 repeats of float at given places in UB (bytes X, Y, Z), with given strides of x; `ticks` gets
// the system counter before and behind them, all pipes empty both times.
#include "kernel_operator.h"

#ifndef X_BLOCK
#define X_BLOCK 1
#endif
#ifndef X_REPEAT
#define X_REPEAT 8
#endif

using namespace AscendC;

constexpr uint32_t kElements = 4096, kTimes = 1000;

extern "C" __global__ __aicore__ void banks(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR ticks) {
  GlobalTensor<float> xs, ys, zs;
  xs.SetGlobalBuffer((__gm__ float*)x, kElements);
  ys.SetGlobalBuffer((__gm__ float*)y, kElements);
  zs.SetGlobalBuffer((__gm__ float*)z, kElements);
  LocalTensor<float> a(TPosition::VECCALC, X, kElements), b(TPosition::VECCALC, Y, kElements),
      c(TPosition::VECCALC, Z, kElements);
  DataCopy(a, xs, kElements);
  DataCopy(b, ys, kElements);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  PipeBarrier<PIPE_ALL>();
  const int64_t before = GetSystemCycle();
  for (uint32_t i = 0; i < kTimes; i++) Add(c, a, b, 64, kElements / 64, {1, X_BLOCK, 1, 8, X_REPEAT, 8});
  PipeBarrier<PIPE_ALL>();
  const int64_t behind = GetSystemCycle();
  GlobalTensor<int64_t> counted;
  counted.SetGlobalBuffer((__gm__ int64_t*)ticks, 2);
  counted.SetValue(0, before);
  counted.SetValue(1, behind);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(zs, c, kElements);
  PipeBarrier<PIPE_ALL>();
}
