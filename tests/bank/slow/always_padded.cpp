// y = x + 1 by DataCopyPad, though every tile is whole blocks
// case: x=float16[2048,256] -> y=float16[2048,256], 8 blocks
// class: pad_copy_unneeded
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 1024, SHARE = 2048 * 256 / 8;

extern "C" __global__ __aicore__ void always_padded(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  GlobalTensor<half> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * SHARE);
  for (uint32_t i = 0; i < SHARE / TILE; i++) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopyExtParams inParams{1, static_cast<uint32_t>(TILE * sizeof(half)), 0, 0, 0};
    DataCopyPadExtParams<half> padParams{false, 0, 0, 0};
    DataCopyPad(a, xGm[i * TILE], inParams, padParams);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>();
    Adds(b, a, (half)1.0f, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<half>();
    DataCopyExtParams outParams{1, static_cast<uint32_t>(TILE * sizeof(half)), 0, 0, 0};
    DataCopyPad(yGm[i * TILE], b, outParams);
    out.FreeTensor(b);
  }
}
