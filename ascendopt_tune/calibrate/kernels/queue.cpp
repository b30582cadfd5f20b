// Queues and buffers: `buffers` TBuf that are initialized (at most 60), then a buffer that goes `times` times through a
// queue for one tensor, or, with `ring`, through one for two.
#include "kernel_operator.h"

using namespace AscendC;

template <int32_t depth>
__aicore__ inline void pass(TQue<TPosition::VECIN, depth>& in, uint32_t times) {
  for (uint32_t i = 0; i < times; i++) {
    LocalTensor<float> filled = in.template AllocTensor<float>();
    in.EnQue(filled);
    LocalTensor<float> used = in.template DeQue<float>();
    in.FreeTensor(used);
  }
}

extern "C" __global__ __aicore__ void queue(uint32_t buffers, uint32_t times, uint32_t ring) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  TBuf<TPosition::VECCALC> calc[60];
  TQue<TPosition::VECIN, 1> single;
  TQue<TPosition::VECIN, 2> several;
  pipe.InitBuffer(single, 1, 1024);
  pipe.InitBuffer(several, 1, 1024);
  for (uint32_t i = 0; i < buffers; i++) pipe.InitBuffer(calc[i], 256);
  if (ring)
    pass(several, times);
  else
    pass(single, times);
}
