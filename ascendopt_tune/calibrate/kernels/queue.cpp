// Queues and buffers: `buffers` TBuf that are initialized (at most 60), then a buffer that goes through a queue `times`
// times.
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void queue(uint32_t buffers, uint32_t times) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  TBuf<TPosition::VECCALC> calc[60];
  TQue<TPosition::VECIN, 1> in;
  pipe.InitBuffer(in, 1, 1024);
  for (uint32_t i = 0; i < buffers; i++) pipe.InitBuffer(calc[i], 256);
  for (uint32_t i = 0; i < times; i++) {
    LocalTensor<float> filled = in.AllocTensor<float>();
    in.EnQue(filled);
    LocalTensor<float> used = in.DeQue<float>();
    in.FreeTensor(used);
  }
}
