// y = a + 3 b + 5 c, one of the products behind a condition, the other one some instructions in front of its sum
// case: a=float32[64,256] b=float32[64,256] c=float32[64,256] -> y=float32[64,256], 8 blocks
// motif: fused-multiply-add, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 512, SHARE = 64 * 256 / 8;

class Total {
 public:
  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in, 2, 3 * TILE * sizeof(float));
    pipe->InitBuffer(out, 2, TILE * sizeof(float));
    pipe->InitBuffer(work, TILE * sizeof(float));
    aGm.SetGlobalBuffer((__gm__ float*)a + GetBlockIdx() * SHARE);
    bGm.SetGlobalBuffer((__gm__ float*)b + GetBlockIdx() * SHARE);
    cGm.SetGlobalBuffer((__gm__ float*)c + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
    scaled = GetBlockNum() > 0 ? 3.0f : 1.0f;
  }
  __aicore__ inline void Turn(uint32_t i) {
    LocalTensor<float> x = in.AllocTensor<float>();
    DataCopy(x, aGm[i * TILE], TILE);
    DataCopy(x[TILE], bGm[i * TILE], TILE);
    DataCopy(x[2 * TILE], cGm[i * TILE], TILE);
    in.EnQue(x);
    x = in.DeQue<float>();
    LocalTensor<float> y = out.AllocTensor<float>();
    LocalTensor<float> p = work.Get<float>();
    LocalTensor<float> b = x[TILE];
    Muls(p, x[2 * TILE], 5.0f, TILE);
    Adds(y, x, 0.0f, TILE);
    PipeBarrier<PIPE_V>();
    Add(y, y, p, TILE);
    if (scaled != 1.0f) {
      Muls(b, b, scaled, TILE);
    }
    PipeBarrier<PIPE_V>();
    Add(y, y, b, TILE);
    in.FreeTensor(x);
    out.EnQue(y);
    y = out.DeQue<float>();
    DataCopy(yGm[i * TILE], y, TILE);
    out.FreeTensor(y);
  }

 private:
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<QuePosition::VECCALC> work;
  GlobalTensor<float> aGm, bGm, cGm, yGm;
  float scaled;
};

extern "C" __global__ __aicore__ void scaled_sum(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR y) {
  TPipe pipe;
  Total total;
  total.Init(a, b, c, y, &pipe);
  for (uint32_t i = 0; i < SHARE / TILE; i++) {
    total.Turn(i);
  }
}
