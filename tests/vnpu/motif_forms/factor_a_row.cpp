// y = x s for a value s a row, a row at a time: 64 elements a repeat, and what is left
// case: x=float32[256,200] s=float32[256] -> y=float32[256,200], 8 blocks
// motif: merged-rows, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 200, ROWS = 32, SHARE = 256 / 8, LANES = 64, BLOCK = 8;

__aicore__ inline void Scale(const LocalTensor<float>& y, const LocalTensor<float>& x,
                             const LocalTensor<float>& eights) {
  BinaryRepeatParams strides;
  strides.dstBlkStride = 1;
  strides.src0BlkStride = 1;
  strides.src1BlkStride = 0;
  strides.dstRepStride = BLOCK;
  strides.src0RepStride = BLOCK;
  strides.src1RepStride = 0;
  const uint32_t whole = WIDTH / LANES, rest = WIDTH % LANES;
  for (uint32_t r = 0; r < ROWS; r++) {
    const uint32_t at = r * WIDTH;
    Mul(y[at], x[at], eights[r * BLOCK], LANES, whole, strides);
    PipeBarrier<PIPE_V>();
    if (rest > 0) {
      Mul(y[at + whole * LANES], x[at + whole * LANES], eights[r * BLOCK], rest, 1, strides);
      PipeBarrier<PIPE_V>();
    }
  }
}

extern "C" __global__ __aicore__ void factor_a_row(GM_ADDR x, GM_ADDR s, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in, values;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> blocks;
  pipe.InitBuffer(in, 1, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(values, 1, ROWS * sizeof(float));
  pipe.InitBuffer(out, 1, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(blocks, ROWS * 32);
  GlobalTensor<float> xGm, sGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
  sGm.SetGlobalBuffer((__gm__ float*)s + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WIDTH);
  LocalTensor<float> a = in.AllocTensor<float>();
  LocalTensor<float> scale = values.AllocTensor<float>();
  DataCopy(a, xGm, ROWS * WIDTH);
  DataCopy(scale, sGm, ROWS);
  in.EnQue(a);
  values.EnQue(scale);
  a = in.DeQue<float>();
  scale = values.DeQue<float>();
  LocalTensor<float> eights = blocks.Get<float>();
  Brcb(eights, scale, ROWS / 8, {1, 8});
  PipeBarrier<PIPE_V>();
  LocalTensor<float> b = out.AllocTensor<float>();
  Scale(b, a, eights);
  in.FreeTensor(a);
  values.FreeTensor(scale);
  out.EnQue(b);
  b = out.DeQue<float>();
  DataCopy(yGm, b, ROWS * WIDTH);
  out.FreeTensor(b);
}
