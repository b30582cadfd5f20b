// y = x * scale[0]; the scale is read from global memory in every turn
// case: x=float32[1024,256] scale=float32[8] -> y=float32[1024,256], 8 blocks
// class: repeated_scalar_read
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 1024, SHARE = 1024 * 256 / 8;

extern "C" __global__ __aicore__ void scale_from_gm(GM_ADDR x, GM_ADDR scale, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<float> xGm, scaleGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
  scaleGm.SetGlobalBuffer((__gm__ float*)scale);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
  for (int32_t i = 0; i < SHARE / TILE; i++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[i * TILE], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    float factor = scaleGm.GetValue(0);
    Muls(b, a, factor, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[i * TILE], b, TILE);
    out.FreeTensor(b);
  }
}
