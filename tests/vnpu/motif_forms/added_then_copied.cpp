// y = a + 3 b, summed up in a and copied where y isn't a
// case: a=float32[256,1000] b=float32[256,1000] -> y=float32[256,1000], 8 blocks
// motif: extra-copy, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 4000, SHARE = 256 * 1000 / 8;

template <typename T>
__aicore__ inline void AddScaled(const LocalTensor<T>& sum, const LocalTensor<T>& one, const LocalTensor<T>& other,
                                 T factor, uint32_t n) {
  Axpy<T, T>(one, other, factor, n);
  if (sum.GetPhyAddr() != one.GetPhyAddr()) {
    PipeBarrier<PIPE_V>();
    constexpr uint32_t BLOCK = 32 / sizeof(T);
    DataCopy(sum, one, (n + BLOCK - 1) / BLOCK * BLOCK);
  }
}

extern "C" __global__ __aicore__ void added_then_copied(GM_ADDR a, GM_ADDR b, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> ones, others;
  TQue<QuePosition::VECOUT, 1> sums;
  pipe.InitBuffer(ones, 2, TILE * sizeof(float));
  pipe.InitBuffer(others, 2, TILE * sizeof(float));
  pipe.InitBuffer(sums, 2, TILE * sizeof(float));
  GlobalTensor<float> aGm, bGm, yGm;
  aGm.SetGlobalBuffer((__gm__ float*)a + GetBlockIdx() * SHARE);
  bGm.SetGlobalBuffer((__gm__ float*)b + GetBlockIdx() * SHARE);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
  for (uint32_t at = 0; at < SHARE; at += TILE) {
    LocalTensor<float> one = ones.AllocTensor<float>();
    LocalTensor<float> other = others.AllocTensor<float>();
    DataCopy(one, aGm[at], TILE);
    DataCopy(other, bGm[at], TILE);
    ones.EnQue(one);
    others.EnQue(other);
    one = ones.DeQue<float>();
    other = others.DeQue<float>();
    LocalTensor<float> sum = sums.AllocTensor<float>();
    AddScaled<float>(sum, one, other, 3.0f, TILE);
    ones.FreeTensor(one);
    others.FreeTensor(other);
    sums.EnQue(sum);
    sum = sums.DeQue<float>();
    DataCopy(yGm[at], sum, TILE);
    sums.FreeTensor(sum);
  }
}
