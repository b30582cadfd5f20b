// y = w0 x0 + w1 x1 + w2 x2 of three matrices one below the other, summed up from zeros
// case: x=float32[192,1024] w=float32[8] -> y=float32[64,1024], 8 blocks
// motif: first-term, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 1024, ROWS = 64, SHARE = 64 / 8, TERMS = 3;

extern "C" __global__ __aicore__ void three_terms(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in, weights;
  TQue<QuePosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 2, WIDTH * sizeof(float));
  pipe.InitBuffer(weights, 1, 32);
  pipe.InitBuffer(out, 2, WIDTH * sizeof(float));
  GlobalTensor<float> xGm, wGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
  wGm.SetGlobalBuffer((__gm__ float*)w);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WIDTH);
  LocalTensor<float> weight = weights.AllocTensor<float>();
  DataCopy(weight, wGm, 8);
  weights.EnQue(weight);
  weight = weights.DeQue<float>();
  event_t here = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_S));
  SetFlag<HardEvent::MTE2_S>(here);
  WaitFlag<HardEvent::MTE2_S>(here);
  for (uint32_t row = 0; row < SHARE; row++) {
    LocalTensor<float> sum = out.AllocTensor<float>();
    Duplicate(sum, 0.0f, WIDTH);
    for (uint32_t k = 0; k < TERMS; k++) {
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopy(a, xGm[(k * ROWS + row) * WIDTH], WIDTH);
      in.EnQue(a);
      a = in.DeQue<float>();
      PipeBarrier<PIPE_V>();
      Axpy(sum, a, weight.GetValue(k), WIDTH);
      in.FreeTensor(a);
    }
    out.EnQue(sum);
    sum = out.DeQue<float>();
    DataCopy(yGm[row * WIDTH], sum, WIDTH);
    out.FreeTensor(sum);
  }
  weights.FreeTensor(weight);
}
