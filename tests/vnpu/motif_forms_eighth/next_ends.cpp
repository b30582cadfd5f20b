// y = eight elements of each row of 16 by how far two neighbours of a list are apart
// case: x=float32[4096] ends=int32[257] -> y=float32[256,8], 8 blocks
// motif: kept-value, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t LENGTH = 16, SEGMENTS = 256 / 8;

class NextEnds {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR ends, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x);
    endsGm.SetGlobalBuffer((__gm__ int32_t*)ends);
    yGm.SetGlobalBuffer((__gm__ float*)y);
    pipe->InitBuffer(inQueue, 2, LENGTH * sizeof(float));
    pipe->InitBuffer(outQueue, 2, 8 * sizeof(float));
    first = GetBlockIdx() * SEGMENTS;
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < SEGMENTS; i++) {
      const int32_t from = endsGm.GetValue(first + i) & 255;
      const int32_t length = (endsGm.GetValue(first + i + 1) & 255) - from;
      const float factor = static_cast<float>(length);
      Row(first + i, factor);
    }
  }

 private:
  __aicore__ inline void Row(uint32_t segment, float factor) {
    LocalTensor<float> in = inQueue.AllocTensor<float>();
    DataCopy(in, xGm[segment * LENGTH], LENGTH);
    inQueue.EnQue(in);
    in = inQueue.DeQue<float>();
    LocalTensor<float> out = outQueue.AllocTensor<float>();
    Muls(out, in, factor, 8);
    outQueue.EnQue(out);
    inQueue.FreeTensor(in);
    out = outQueue.DeQue<float>();
    DataCopy(yGm[segment * 8], out, 8);
    outQueue.FreeTensor(out);
  }
  TQue<QuePosition::VECIN, 1> inQueue;
  TQue<QuePosition::VECOUT, 1> outQueue;
  GlobalTensor<float> xGm, yGm;
  GlobalTensor<int32_t> endsGm;
  uint32_t first;
};

extern "C" __global__ __aicore__ void next_ends(GM_ADDR x, GM_ADDR ends, GM_ADDR y) {
  TPipe pipe;
  NextEnds op;
  op.Init(x, ends, y, &pipe);
  op.Process();
}
