// y = x * s + s, s one value a row, which two methods read from global memory for each part of the row
// case: x=float32[64,4096] s=float32[64] -> y=float32[64,4096], 8 blocks
// motif: known-value, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t PART = 512, PARTS = 8, ROWS = 8;

class FactorOfRow {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR s, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in_, 2, PART * sizeof(float));
    pipe->InitBuffer(out_, 2, PART * sizeof(float));
    xGm_.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * PARTS * PART);
    yGm_.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * PARTS * PART);
    sGm_.SetGlobalBuffer((__gm__ float*)s + GetBlockIdx() * ROWS);
  }
  __aicore__ inline void Process() {
    for (uint32_t row = 0; row < ROWS; row++) {
      for (uint32_t part = 0; part < PARTS; part++) {
        Scale(row, part);
        Shift(row, part);
      }
    }
  }

 private:
  __aicore__ inline void Scale(uint32_t row, uint32_t part) {
    LocalTensor<float> x = in_.AllocTensor<float>();
    DataCopy(x, xGm_[(row * PARTS + part) * PART], PART);
    in_.EnQue(x);
    x = in_.DeQue<float>();
    LocalTensor<float> y = out_.AllocTensor<float>();
    const float factor = sGm_.GetValue(row);
    Muls(y, x, factor, PART);
    in_.FreeTensor(x);
    out_.EnQue(y);
  }
  __aicore__ inline void Shift(uint32_t row, uint32_t part) {
    LocalTensor<float> y = out_.DeQue<float>();
    PipeBarrier<PIPE_V>();
    Adds(y, y, sGm_.GetValue(row), PART);
    out_.EnQue(y);
    y = out_.DeQue<float>();
    DataCopy(yGm_[(row * PARTS + part) * PART], y, PART);
    out_.FreeTensor(y);
  }

  TQue<QuePosition::VECIN, 2> in_;
  TQue<QuePosition::VECOUT, 2> out_;
  GlobalTensor<float> xGm_, sGm_, yGm_;
};

extern "C" __global__ __aicore__ void factor_of_row(GM_ADDR x, GM_ADDR s, GM_ADDR y) {
  TPipe pipe;
  FactorOfRow op;
  op.Init(x, s, y, &pipe);
  op.Process();
}
