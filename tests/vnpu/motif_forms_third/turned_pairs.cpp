// y = the two halves of each row of x turned by an angle: products of 32 elements a row, and their sum
// case: x=float32[2048,64] c=float32[2048,64] s=float32[2048,64] -> y=float32[2048,64], 4 blocks
// motif: fused-multiply-add, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 64, HALF = 32, SHARE = 2048 / 4, ROWS = 64, TILE = ROWS * WIDTH;

class TurnedPairs {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR c, GM_ADDR s, GM_ADDR y, TPipe* pipe) {
    const uint64_t share = GetBlockIdx() * SHARE * WIDTH;
    source.SetGlobalBuffer((__gm__ float*)x + share);
    cosines.SetGlobalBuffer((__gm__ float*)c + share);
    sines.SetGlobalBuffer((__gm__ float*)s + share);
    target.SetGlobalBuffer((__gm__ float*)y + share);
    pipe->InitBuffer(inQueue, 2, 3 * TILE * sizeof(float));
    pipe->InitBuffer(outQueue, 2, TILE * sizeof(float));
    pipe->InitBuffer(work, TILE * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < SHARE / ROWS; i++) {
      CopyIn(i);
      Turn();
      CopyOut(i);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t i) {
    LocalTensor<float> in = inQueue.AllocTensor<float>();
    DataCopy(in, source[i * TILE], TILE);
    DataCopy(in[TILE], cosines[i * TILE], TILE);
    DataCopy(in[2 * TILE], sines[i * TILE], TILE);
    inQueue.EnQue(in);
  }
  __aicore__ inline void Turn() {
    LocalTensor<float> in = inQueue.DeQue<float>();
    LocalTensor<float> out = outQueue.AllocTensor<float>();
    LocalTensor<float> other = work.Get<float>();
    LocalTensor<float> cosine = in[TILE], sine = in[2 * TILE];
    Mul(out, in, cosine, TILE);
    Mul(other, in[HALF], sine, HALF, ROWS, {1, 1, 1, 8, 8, 8});
    Mul(other[HALF], in, sine[HALF], HALF, ROWS, {1, 1, 1, 8, 8, 8});
    PipeBarrier<PIPE_V>();
    Add(out, out, other, TILE);
    inQueue.FreeTensor(in);
    outQueue.EnQue(out);
  }
  __aicore__ inline void CopyOut(uint32_t i) {
    LocalTensor<float> out = outQueue.DeQue<float>();
    DataCopy(target[i * TILE], out, TILE);
    outQueue.FreeTensor(out);
  }
  TQue<QuePosition::VECIN, 2> inQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  TBuf<QuePosition::VECCALC> work;
  GlobalTensor<float> source, cosines, sines, target;
};

extern "C" __global__ __aicore__ void turned_pairs(GM_ADDR x, GM_ADDR c, GM_ADDR s, GM_ADDR y) {
  TPipe pipe;
  TurnedPairs op;
  op.Init(x, c, s, y, &pipe);
  op.Process();
}
