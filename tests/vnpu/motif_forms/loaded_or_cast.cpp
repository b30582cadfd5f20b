// y = exp(x) / (1 + exp(x)), in float32: what is loaded is copied to where other types would be cast to
// case: x=float32[256,128] -> y=float32[256,128], 8 blocks
// motif: extra-copy, 2 alternatives
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 1024, SHARE = 256 * 128 / 8;

template <typename T>
class Logistic {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in, 2, TILE * sizeof(T));
    pipe->InitBuffer(out, 2, TILE * sizeof(float));
    pipe->InitBuffer(work, TILE * sizeof(float));
    xGm.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
  }
  __aicore__ inline void Turn(uint32_t i) {
    LocalTensor<T> a = in.template AllocTensor<T>();
    DataCopy(a, xGm[i * TILE], TILE);
    in.EnQue(a);
    a = in.template DeQue<T>();
    LocalTensor<float> power = work.Get<float>();
    if constexpr (sizeof(T) == sizeof(float)) {
      Adds(power, a, static_cast<T>(0), TILE);
    } else {
      Cast(power, a, RoundMode::CAST_NONE, TILE);
    }
    in.FreeTensor(a);
    PipeBarrier<PIPE_V>();
    Exp(power, power, TILE);
    PipeBarrier<PIPE_V>();
    LocalTensor<float> b = out.template AllocTensor<float>();
    Adds(b, power, 1.0f, TILE);
    PipeBarrier<PIPE_V>();
    Div(b, power, b, TILE);
    out.EnQue(b);
    b = out.template DeQue<float>();
    DataCopy(yGm[i * TILE], b, TILE);
    out.FreeTensor(b);
  }

 private:
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> work;
  GlobalTensor<T> xGm;
  GlobalTensor<float> yGm;
};

extern "C" __global__ __aicore__ void loaded_or_cast(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Logistic<float> logistic;
  logistic.Init(x, y, &pipe);
  for (uint32_t i = 0; i < SHARE / TILE; i++) {
    logistic.Turn(i);
  }
}
