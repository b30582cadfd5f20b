// y = exp(x) + b, b loaded anew for each row into the queue that x comes by
// case: x=float32[512,1000] b=float32[1000] -> y=float32[512,1000], 8 blocks
// motif: done-once, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 1000, ROWS = 64;

template <typename DTYPE>
class BiasedRows {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR b, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(given, 1, WIDTH * sizeof(DTYPE));
    pipe->InitBuffer(result, 1, WIDTH * sizeof(DTYPE));
    pipe->InitBuffer(work, WIDTH * sizeof(DTYPE));
    xGm.SetGlobalBuffer((__gm__ DTYPE*)x + GetBlockIdx() * ROWS * WIDTH);
    yGm.SetGlobalBuffer((__gm__ DTYPE*)y + GetBlockIdx() * ROWS * WIDTH);
    bGm.SetGlobalBuffer((__gm__ DTYPE*)b);
  }
  __aicore__ inline void Process() {
    uint32_t at = 0;
    for (uint32_t row = 0; row < ROWS; ++row) {
      Exponential(at);
      Shifted(at);
      at += WIDTH;
    }
  }

 private:
  __aicore__ inline void Exponential(uint32_t at) {
    LocalTensor<DTYPE> power = work.template Get<DTYPE>();
    LocalTensor<DTYPE> x = given.template AllocTensor<DTYPE>();
    DataCopy(x, xGm[at], WIDTH);
    given.EnQue(x);
    auto arrived = given.template DeQue<DTYPE>();
    Exp(power, arrived, WIDTH);
    given.FreeTensor(arrived);
  }
  __aicore__ inline void Shifted(uint32_t at) {
    LocalTensor<DTYPE> power = work.template Get<DTYPE>();
    LocalTensor<DTYPE> bias = given.template AllocTensor<DTYPE>();
    DataCopy(bias, bGm, WIDTH);
    given.EnQue(bias);
    auto added = given.template DeQue<DTYPE>();
    LocalTensor<DTYPE> sum = result.template AllocTensor<DTYPE>();
    PipeBarrier<PIPE_V>();
    Add(sum, power, added, WIDTH);
    PipeBarrier<PIPE_V>();
    given.FreeTensor(added);
    result.EnQue(sum);
    sum = result.template DeQue<DTYPE>();
    DataCopy(yGm[at], sum, WIDTH);
    result.FreeTensor(sum);
  }

  TQue<QuePosition::VECIN, 1> given;
  TQue<QuePosition::VECOUT, 1> result;
  TBuf<QuePosition::VECCALC> work;
  GlobalTensor<DTYPE> xGm, bGm, yGm;
};

extern "C" __global__ __aicore__ void bias_a_row(GM_ADDR x, GM_ADDR b, GM_ADDR y) {
  TPipe pipe;
  BiasedRows<float> rows;
  rows.Init(x, b, y, &pipe);
  rows.Process();
}
