// Flags between cores: every core gives a tile to its neighbour through global memory.
#include "kernel_operator.h"

using namespace AscendC;

namespace {
constexpr uint32_t kCount = 256;  // floats a tile: 1 KiB

GlobalTensor<float> tile(GM_ADDR p, uint32_t index) {
  GlobalTensor<float> g;
  g.SetGlobalBuffer(reinterpret_cast<float*>(p) + index * kCount);
  return g;
}
}  // namespace

// bit 0: the store to `y` is behind a flag that the load from it waits for; bit 1: the flag is raised before the store,
// not behind it; bit 2: cores wait only at the end; bit 3: block 0 doesn't set the flag; bit 4: block 0 doesn't wait.
extern "C" __global__ __aicore__ void rotate(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t bits) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kCount), b(TPosition::VECCALC, 4096, kCount);
  uint32_t me = GetBlockIdx(), next = (me + 1) % GetBlockNum();
  bool sets = (bits & 1) && !((bits & 8) && me == 0), waits = (bits & 1) && !((bits & 16) && me == 0);
  DataCopy(a, tile(x, me), kCount);
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  if (sets && (bits & 2)) CrossCoreSetFlag<0, PIPE_MTE3>(3);
  DataCopy(tile(y, me), a, kCount);
  if (sets && !(bits & 2)) CrossCoreSetFlag<0, PIPE_MTE3>(3);
  if (waits && !(bits & 4)) CrossCoreWaitFlag(3);
  DataCopy(b, tile(y, next), kCount);
  if (waits && (bits & 4)) CrossCoreWaitFlag(3);
  SetFlag<HardEvent::MTE2_MTE3>(1);
  WaitFlag<HardEvent::MTE2_MTE3>(1);
  DataCopy(tile(z, me), b, kCount);
}

// A flag is raised at the start; the last core comes late by `loops` vector instructions.
extern "C" __global__ __aicore__ void late(GM_ADDR x, uint32_t loops) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kCount);
  DataCopy(a, tile(x, GetBlockIdx()), kCount);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  if (GetBlockIdx() == GetBlockNum() - 1)
    for (uint32_t i = 0; i < loops; i++) {
      Adds(a, a, 1.0f, kCount);
      PipeBarrier<PIPE_V>();
    }
  CrossCoreSetFlag<0, PIPE_V>(0);
  CrossCoreWaitFlag(0);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(tile(x, GetBlockIdx()), a, kCount);
}
