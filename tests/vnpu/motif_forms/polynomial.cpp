// y = ((x / 2 + 1) x - 3) x + 5, each scalar added, or multiplied by, in an instruction of its own
// case: x=float32[512,250] -> y=float32[512,250], 8 blocks
// motif: fused-scalars, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 1000, SHARE = 512 * 250 / 8;
constexpr float HALF = 0.5f, LAST = 5.0f;

class Polynomial {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in, 2, TILE * sizeof(float));
    pipe->InitBuffer(out, 2, TILE * sizeof(float));
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
    offset = GetBlockNum() > 0 ? -3.0f : 0.0f;
  }
  __aicore__ inline void Turn(uint32_t i) {
    LocalTensor<float> x = in.AllocTensor<float>();
    DataCopy(x, xGm[i * TILE], TILE);
    in.EnQue(x);
    x = in.DeQue<float>();
    LocalTensor<float> y = out.AllocTensor<float>();
    const LocalTensor<float>& sum = y;
    Adds(y, x, 0.0f, TILE);
    PipeBarrier<PIPE_V>();
    Muls(y, y, HALF, TILE);
    PipeBarrier<PIPE_V>();
    Adds(sum, y, 1.0f, TILE);
    PipeBarrier<PIPE_V>();
    Mul(y, y, x, TILE);
    PipeBarrier<PIPE_V>();
    Adds(y, y, offset, TILE);
    PipeBarrier<PIPE_V>();
    Mul(y, x, sum, TILE);
    PipeBarrier<PIPE_V>();
    Adds(y, y, LAST, TILE);
    in.FreeTensor(x);
    out.EnQue(y);
    y = out.DeQue<float>();
    DataCopy(yGm[i * TILE], y, TILE);
    out.FreeTensor(y);
  }

 private:
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  GlobalTensor<float> xGm, yGm;
  float offset;
};

extern "C" __global__ __aicore__ void polynomial(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Polynomial polynomial;
  polynomial.Init(x, y, &pipe);
  for (uint32_t i = 0; i < SHARE / TILE; i++) {
    polynomial.Turn(i);
  }
}
