// y = |x| - x x, a repeat at a time, the rest behind the loop
// case: x=float32[8,5000] -> y=float32[8,5000], 8 blocks
// motif: merged-rows, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t SHARE = 5000;

template <typename T>
__aicore__ inline void Compute(const LocalTensor<T>& y, const LocalTensor<T>& x, const LocalTensor<T>& room,
                               uint32_t n) {
  const uint32_t lanes = 256 / sizeof(T);
  uint32_t at = 0;
  for (uint32_t i = 0; i < n / lanes; i++) {
    Mul(room, x[at], x[at], static_cast<int32_t>(lanes));
    PipeBarrier<PIPE_V>();
    Abs(x[at], x[at], static_cast<int32_t>(lanes));
    PipeBarrier<PIPE_V>();
    Sub(y[at], x[at], room, static_cast<int32_t>(lanes));
    PipeBarrier<PIPE_V>();
    at += lanes;
  }
  if (n % lanes != 0) {
    Mul(room, x[at], x[at], n % lanes);
    PipeBarrier<PIPE_V>();
    Abs(x[at], x[at], n % lanes);
    PipeBarrier<PIPE_V>();
    Sub(y[at], x[at], room, n % lanes);
  }
}

extern "C" __global__ __aicore__ void in_slices(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> work;
  pipe.InitBuffer(in, 1, SHARE * sizeof(float));
  pipe.InitBuffer(out, 1, SHARE * sizeof(float));
  pipe.InitBuffer(work, 256);
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
  LocalTensor<float> a = in.AllocTensor<float>();
  DataCopy(a, xGm, SHARE);
  in.EnQue(a);
  a = in.DeQue<float>();
  LocalTensor<float> b = out.AllocTensor<float>();
  Compute<float>(b, a, work.Get<float>(), SHARE);
  in.FreeTensor(a);
  out.EnQue(b);
  b = out.DeQue<float>();
  DataCopy(yGm, b, SHARE);
  out.FreeTensor(b);
}
