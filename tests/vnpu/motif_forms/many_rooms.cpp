// y = exp(x) x + exp(x) + x, each step in scratch of its own
// case: x=float32[64,512] -> y=float32[64,512], 8 blocks
// motif: shared-buffers, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 1024, SHARE = 64 * 512 / 8;

template <typename TYPE>
class Steps {
 public:
  __aicore__ inline void Begin(GM_ADDR x, GM_ADDR y, TPipe* begun) {
    from.SetGlobalBuffer((__gm__ TYPE*)x + GetBlockIdx() * SHARE, SHARE);
    begun->InitBuffer(in, 2, TILE * sizeof(TYPE));
    begun->InitBuffer(power, TILE * sizeof(TYPE));
    begun->InitBuffer(out, 2, TILE * sizeof(TYPE));
    begun->InitBuffer(both, TILE * sizeof(TYPE));
    to.SetGlobalBuffer((__gm__ TYPE*)y + GetBlockIdx() * SHARE, SHARE);
    begun->InitBuffer(sums, 2 * TILE * sizeof(TYPE));
    begun->InitBuffer(few, 40);
  }
  __aicore__ inline void Run() {
    Duplicate(few.Get<TYPE>(), (TYPE)1, 10);
    for (uint32_t tile = 0; tile < SHARE / TILE; tile++) {
      LocalTensor<TYPE> a = in.template AllocTensor<TYPE>();
      DataCopy(a, from[tile * TILE], TILE);
      in.EnQue(a);
      a = in.template DeQue<TYPE>();
      LocalTensor<TYPE> b = out.template AllocTensor<TYPE>();
      LocalTensor<TYPE> e = power.template Get<TYPE>(), p = both.template AllocTensor<TYPE>();
      LocalTensor<TYPE> s = sums.template GetWithOffset<TYPE>(TILE, TILE * sizeof(TYPE));
      Exp(e, a, TILE);
      PipeBarrier<PIPE_V>();
      Mul(p, e, a, TILE);
      PipeBarrier<PIPE_V>();
      Add(s, p, e, TILE);
      PipeBarrier<PIPE_V>();
      Add(b, s, a, TILE);
      both.FreeTensor(p);
      in.FreeTensor(a);
      out.EnQue(b);
      b = out.template DeQue<TYPE>();
      DataCopy(to[tile * TILE], b, TILE);
      out.FreeTensor(b);
    }
  }

 private:
  GlobalTensor<TYPE> from, to;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> power, both;
  TBuf<TPosition::VECIN> sums;
  TBuf<> few;
};

extern "C" __global__ __aicore__ void many_rooms(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Steps<float> steps;
  steps.Begin(x, y, &pipe);
  steps.Run();
}
