// y = x without its first 8 columns, gathered by offsets that the scalar unit sets in the beginning
// case: x=float32[16,264] -> y=float32[16,256], 2 blocks
// motif: scalar-loop, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t WIDTH = 264, KEPT = 256, SHARE = 16 / 2;

extern "C" __global__ __aicore__ void offsets_by_hand(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> room;
  pipe.InitBuffer(in, 2, WIDTH * sizeof(float));
  pipe.InitBuffer(out, 2, KEPT * sizeof(float));
  pipe.InitBuffer(room, KEPT * sizeof(uint32_t));
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * KEPT);
  LocalTensor<uint32_t> offsets = room.Get<uint32_t>();
  for (int32_t i = 0; i < KEPT; i++) {
    offsets.SetValue(i, (i + 8) * sizeof(float));
  }
  for (int32_t row = 0; row < SHARE; row++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[row * WIDTH], WIDTH);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Gather(b, a, offsets, 0, KEPT);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[row * KEPT], b, KEPT);
    out.FreeTensor(b);
  }
}
