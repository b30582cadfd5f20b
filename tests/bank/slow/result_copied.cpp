// z = x * y; the product is made in a work buffer and then copied to the output queue's tensor
// case: x=float16[1024,512] y=float16[1024,512] -> z=float16[1024,512], 8 blocks
// class: extra_ub_copy
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 4096, SHARE = 1024 * 512 / 8;

extern "C" __global__ __aicore__ void result_copied(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> qx, qy;
  TQue<QuePosition::VECOUT, 2> qz;
  TBuf<QuePosition::VECCALC> workBuf;
  pipe.InitBuffer(qx, 2, TILE * sizeof(half));
  pipe.InitBuffer(qy, 2, TILE * sizeof(half));
  pipe.InitBuffer(qz, 2, TILE * sizeof(half));
  pipe.InitBuffer(workBuf, TILE * sizeof(half));
  GlobalTensor<half> gx, gy, gz;
  gx.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * SHARE);
  gy.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * SHARE);
  gz.SetGlobalBuffer((__gm__ half*)z + GetBlockIdx() * SHARE);
  for (int32_t i = 0; i < SHARE / TILE; i++) {
    LocalTensor<half> a = qx.AllocTensor<half>();
    LocalTensor<half> b = qy.AllocTensor<half>();
    DataCopy(a, gx[i * TILE], TILE);
    DataCopy(b, gy[i * TILE], TILE);
    qx.EnQue(a);
    qy.EnQue(b);
    a = qx.DeQue<half>();
    b = qy.DeQue<half>();
    LocalTensor<half> work = workBuf.Get<half>();
    Mul(work, a, b, TILE);
    qx.FreeTensor(a);
    qy.FreeTensor(b);
    LocalTensor<half> c = qz.AllocTensor<half>();
    DataCopy(c, work, TILE);
    qz.EnQue(c);
    c = qz.DeQue<half>();
    DataCopy(gz[i * TILE], c, TILE);
    qz.FreeTensor(c);
  }
}
