// What launching costs: a kernel that does nothing, with and without tiling data, or one vector instruction `times`
// times in every block, so that blocks of one wave end before the next one begins.
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

struct Tiling {
  uint32_t words[16];
};

extern "C" __global__ __aicore__ void empty() { KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY); }

extern "C" __global__ __aicore__ void tiled(GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  LocalTensor<uint32_t> ub(TPosition::VECCALC, 0, 64);
  ub.SetValue(0, t.words[0] + t.words[15]);
}

extern "C" __global__ __aicore__ void spin(uint32_t times) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  LocalTensor<float> x(TPosition::VECCALC, 0, 8192), z(TPosition::VECCALC, 131072, 8192);
  Duplicate(x, 1.0f, 8192);
  for (uint32_t i = 0; i < times; i++) Abs(z, x, 64, 128, {1, 1, 8, 8});
  PipeBarrier<PIPE_ALL>();
}
