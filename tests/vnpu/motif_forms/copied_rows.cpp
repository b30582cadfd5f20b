// y = x g / s for a row g and a value s a row, both spread by Copy with a mask of counts
// case: x=float32[256,192] g=float32[192] s=float32[256] -> y=float32[256,192], 8 blocks
// motif: merged-rows, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 192, ROWS = 16, SHARE = 256 / 8;

extern "C" __global__ __aicore__ void copied_rows(GM_ADDR x, GM_ADDR g, GM_ADDR s, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in, values, row;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> matrix, blocks;
  pipe.InitBuffer(in, 2, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(values, 2, ROWS * sizeof(float));
  pipe.InitBuffer(row, 1, WIDTH * sizeof(float));
  pipe.InitBuffer(out, 2, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(matrix, ROWS * WIDTH * sizeof(float));
  pipe.InitBuffer(blocks, ROWS * 32);
  GlobalTensor<float> xGm, gGm, sGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
  gGm.SetGlobalBuffer((__gm__ float*)g);
  sGm.SetGlobalBuffer((__gm__ float*)s + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * WIDTH);
  LocalTensor<float> gain = row.AllocTensor<float>();
  DataCopy(gain, gGm, WIDTH);
  row.EnQue(gain);
  gain = row.DeQue<float>();
  for (uint32_t at = 0; at < SHARE; at += ROWS) {
    LocalTensor<float> a = in.AllocTensor<float>();
    LocalTensor<float> scale = values.AllocTensor<float>();
    DataCopy(a, xGm[at * WIDTH], ROWS * WIDTH);
    DataCopy(scale, sGm[at], ROWS);
    in.EnQue(a);
    values.EnQue(scale);
    a = in.DeQue<float>();
    scale = values.DeQue<float>();
    LocalTensor<float> all = matrix.Get<float>();
    LocalTensor<float> eights = blocks.Get<float>();
    Brcb(eights, scale, ROWS / 8, {1, 8});
    SetMaskCount();
    SetVectorMask<float, MaskMode::COUNTER>(WIDTH);
    Copy<float, false>(all, gain, MASK_PLACEHOLDER, ROWS, {1, 1, static_cast<uint16_t>(WIDTH / 8), 0});
    SetMaskNorm();
    ResetMask();
    PipeBarrier<PIPE_V>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Mul(b, a, all, ROWS * WIDTH);
    PipeBarrier<PIPE_V>();
    SetMaskCount();
    SetVectorMask<float, MaskMode::COUNTER>(WIDTH);
    Copy<float, false>(all, eights, MASK_PLACEHOLDER, ROWS, {1, 0, static_cast<uint16_t>(WIDTH / 8), 1});
    SetMaskNorm();
    ResetMask();
    PipeBarrier<PIPE_V>();
    Div(b, b, all, ROWS * WIDTH);
    in.FreeTensor(a);
    values.FreeTensor(scale);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[at * WIDTH], b, ROWS * WIDTH);
    out.FreeTensor(b);
  }
  row.FreeTensor(gain);
}
