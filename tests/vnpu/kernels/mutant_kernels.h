// What the verified kernels of mutants_*.cpp share. x and w hold 4096 floats, y gets the result.
#pragma once
#include "mutants.h"

using namespace AscendC;

namespace {
constexpr uint32_t N = 256;  // floats a tile, 1 KiB

GlobalTensor<float> gm(GM_ADDR p, uint32_t offset = 0) {
  GlobalTensor<float> g;
  g.SetGlobalBuffer(reinterpret_cast<float*>(p) + offset);
  return g;
}
template <typename T = float>
LocalTensor<T> tile(uint32_t number) {
  return LocalTensor<T>(TPosition::VECCALC, number * 2048, 2048 / sizeof(T));
}
template <HardEvent event>
ASCENDC_INLINE void fence(int32_t id = 0) {
  SetFlag<event>(id);
  WaitFlag<event>(id);
}
using In = TQue<TPosition::VECIN, 1>;
using Out = TQue<TPosition::VECOUT, 1>;
using Calc = TBuf<TPosition::VECCALC>;
}  // namespace

#define KERNEL(NAME) extern "C" __global__ __aicore__ void NAME(GM_ADDR x, GM_ADDR y, GM_ADDR w)
