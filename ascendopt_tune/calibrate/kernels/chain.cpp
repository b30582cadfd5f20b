// Vector instructions that depend on each other, `times` of them with `repeats` repeats; built with automatic
// synchronization, which has to order them. `turn`: 0 every one reads what the one before wrote, 1 none does.
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void chain(uint32_t turn, uint32_t times, uint32_t repeats) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  LocalTensor<float> x(TPosition::VECCALC, 0, 8192), y(TPosition::VECCALC, 65536 + 256, 8192);
  const uint8_t r = static_cast<uint8_t>(repeats);
  Duplicate(x, 1.0f, 8192);
  Duplicate(y, 1.0f, 8192);
  PipeBarrier<PIPE_V>();
  for (uint32_t i = 0; i < times; i++) {
    Muls(y, x, 1.0f, 64, r, {1, 1, 8, 8});
    if (turn == 0) Muls(x, y, 1.0f, 64, r, {1, 1, 8, 8});
  }
  PipeBarrier<PIPE_ALL>();
}
