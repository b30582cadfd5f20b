// out = a * b + c, in two instructions
// case: a=float32[1024,256] b=float32[1024,256] c=float32[1024,256] -> out=float32[1024,256], 8 blocks
// class: unfused_muladd
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t TILE = 2048, SHARE = 1024 * 256 / 8;

extern "C" __global__ __aicore__ void multiply_then_add(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR out) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> qa, qb, qc;
  TQue<QuePosition::VECOUT, 2> qo;
  pipe.InitBuffer(qa, 2, TILE * sizeof(float));
  pipe.InitBuffer(qb, 2, TILE * sizeof(float));
  pipe.InitBuffer(qc, 2, TILE * sizeof(float));
  pipe.InitBuffer(qo, 2, TILE * sizeof(float));
  GlobalTensor<float> ga, gb, gc, go;
  ga.SetGlobalBuffer((__gm__ float*)a + GetBlockIdx() * SHARE);
  gb.SetGlobalBuffer((__gm__ float*)b + GetBlockIdx() * SHARE);
  gc.SetGlobalBuffer((__gm__ float*)c + GetBlockIdx() * SHARE);
  go.SetGlobalBuffer((__gm__ float*)out + GetBlockIdx() * SHARE);
  for (int32_t i = 0; i < SHARE / TILE; i++) {
    LocalTensor<float> la = qa.AllocTensor<float>();
    LocalTensor<float> lb = qb.AllocTensor<float>();
    LocalTensor<float> lc = qc.AllocTensor<float>();
    DataCopy(la, ga[i * TILE], TILE);
    DataCopy(lb, gb[i * TILE], TILE);
    DataCopy(lc, gc[i * TILE], TILE);
    qa.EnQue(la);
    qb.EnQue(lb);
    qc.EnQue(lc);
    la = qa.DeQue<float>();
    lb = qb.DeQue<float>();
    lc = qc.DeQue<float>();
    LocalTensor<float> lo = qo.AllocTensor<float>();
    Mul(la, la, lb, TILE);
    Add(lo, la, lc, TILE);
    qo.EnQue(lo);
    qa.FreeTensor(la);
    qb.FreeTensor(lb);
    qc.FreeTensor(lc);
    lo = qo.DeQue<float>();
    DataCopy(go[i * TILE], lo, TILE);
    qo.FreeTensor(lo);
  }
}
