// y = x - floor(x): the whole part by way of int32
// case: x=float32[65536] -> y=float32[65536], 4 blocks
// motif: rounding-cast, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TOTAL = 65536, SHARE = TOTAL / 4, TILE = 4096;

class WholeParts {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    source.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
    target.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
    pipe->InitBuffer(inQueue, 2, TILE * sizeof(float));
    pipe->InitBuffer(outQueue, 2, TILE * sizeof(float));
    pipe->InitBuffer(wholes, TILE * sizeof(int32_t));
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < SHARE / TILE; i++) {
      LocalTensor<float> in = inQueue.AllocTensor<float>();
      DataCopy(in, source[i * TILE], TILE);
      inQueue.EnQue(in);
      LocalTensor<float> given = inQueue.DeQue<float>();
      LocalTensor<float> out = outQueue.AllocTensor<float>();
      LocalTensor<int32_t> whole = wholes.Get<int32_t>();
      Cast(whole, given, RoundMode::CAST_FLOOR, TILE);
      PipeBarrier<PIPE_V>();
      Cast(out, whole, RoundMode::CAST_NONE, TILE);
      PipeBarrier<PIPE_V>();
      Sub(out, given, out, TILE);
      inQueue.FreeTensor(given);
      outQueue.EnQue(out);
      LocalTensor<float> made = outQueue.DeQue<float>();
      DataCopy(target[i * TILE], made, TILE);
      outQueue.FreeTensor(made);
    }
  }

 private:
  TQue<QuePosition::VECIN, 2> inQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  TBuf<QuePosition::VECCALC> wholes;
  GlobalTensor<float> source, target;
};

extern "C" __global__ __aicore__ void whole_parts(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  WholeParts op;
  op.Init(x, y, &pipe);
  op.Process();
}
