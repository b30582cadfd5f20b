// 100 times the sum of 256 floats in counter mode, a barrier after every instruction; `ticks` gets the system counter
// before and behind, all pipes empty both times.
//   STEPS  a digit per instruction, first to last: 1 ReduceDataBlock, 2 ReduceRepeat
#include "kernel_operator.h"

using namespace AscendC;

template <bool whole>
__aicore__ inline void Reduce(const LocalTensor<float>& to, const LocalTensor<float>& from) {
  if constexpr (whole)
    WholeReduceSum<float, false>(to, from, MASK_PLACEHOLDER, 1, 1, 1, 8);
  else
    BlockReduceSum<float, false>(to, from, 1, MASK_PLACEHOLDER, 1, 1, 8);
  PipeBarrier<PIPE_V>();
}

extern "C" __global__ __aicore__ void reduce(GM_ADDR x, GM_ADDR z, GM_ADDR ticks) {
  constexpr uint32_t kElements = 256;
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, kElements);
  to.SetGlobalBuffer((__gm__ float*)z, 8);
  LocalTensor<float> a(TPosition::VECIN, 0, kElements), b(TPosition::VECCALC, 2048, kElements),
      c(TPosition::VECOUT, 4096, kElements);
  DataCopy(a, from, kElements);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  PipeBarrier<PIPE_ALL>();
  const int64_t before = GetSystemCycle();
  for (uint32_t i = 0; i < 100; i++) {
    SetMaskCount();
    SetVectorMask<float>(0, kElements);
#if STEPS == 22
    Reduce<true>(b, a);
    SetVectorMask<float>(0, 4);
    Reduce<true>(c, b);
#elif STEPS == 111
    Reduce<false>(b, a);
    SetVectorMask<float>(0, 32);
    Reduce<false>(b, b);
    SetVectorMask<float>(0, 4);
    Reduce<false>(c, b);
#else
    Reduce<false>(b, a);
    SetVectorMask<float>(0, 32);
    Reduce<true>(c, b);
#endif
    SetMaskNorm();
  }
  PipeBarrier<PIPE_ALL>();
  const int64_t behind = GetSystemCycle();
  GlobalTensor<int64_t> counted;
  counted.SetGlobalBuffer((__gm__ int64_t*)ticks, 2);
  counted.SetValue(0, before);
  counted.SetValue(1, behind);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(to, c, 8);
  PipeBarrier<PIPE_ALL>();
}
