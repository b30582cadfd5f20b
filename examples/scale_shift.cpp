// y = scale * x + shift, each block over its share of x in tiles of TILE elements, double buffered.
#include "kernel_operator.h"

using namespace AscendC;

#ifndef TILE
#define TILE 2048
#endif

class ScaleShift {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint32_t length, TPipe* pipe) {
    share_ = length / GetBlockNum();
    from_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x) + GetBlockIdx() * share_, share_);
    to_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y) + GetBlockIdx() * share_, share_);
    pipe->InitBuffer(in_, 2, TILE * sizeof(float));
    pipe->InitBuffer(out_, 2, TILE * sizeof(float));
  }

  __aicore__ inline void Process(float scale, float shift) {
    for (uint32_t begin = 0; begin < share_; begin += TILE) {
      const uint32_t count = share_ - begin < TILE ? share_ - begin : TILE;
      LocalTensor<float> x = in_.AllocTensor<float>();
      DataCopy(x, from_[begin], count);
      in_.EnQue(x);
      x = in_.DeQue<float>();
      LocalTensor<float> y = out_.AllocTensor<float>();
      Muls(y, x, scale, count);
      Adds(y, y, shift, count);
      out_.EnQue(y);
      in_.FreeTensor(x);
      y = out_.DeQue<float>();
      DataCopy(to_[begin], y, count);
      out_.FreeTensor(y);
    }
  }

 private:
  TQue<QuePosition::VECIN, 2> in_;
  TQue<QuePosition::VECOUT, 2> out_;
  GlobalTensor<float> from_, to_;
  uint32_t share_ = 0;
};

extern "C" __global__ __aicore__ void scale_shift(GM_ADDR x, GM_ADDR y, float scale, float shift, uint32_t length) {
  TPipe pipe;
  ScaleShift op;
  op.Init(x, y, length, &pipe);
  op.Process(scale, shift);
}
