// y = x / d of half, in pieces of 8192 of which each row of 256 has one divisor: it is read by the scalar unit, filled
// into the result's row, and the row of x is divided by that. Queues for two tensors; tiling data as tiles.cpp has
// them.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kPiece = 8192, kRow = 256;

extern "C" __global__ __aicore__ void rows_divided(GM_ADDR x, GM_ADDR d, GM_ADDR y, GM_ADDR tiling) {
  GlobalTensor<uint32_t> words;
  words.SetGlobalBuffer((__gm__ uint32_t*)tiling, 2);
  const uint32_t share = words.GetValue(0), core = GetBlockIdx();
  const uint32_t count = core + 1 < GetBlockNum() ? share : words.GetValue(1), first = core * share;
  GlobalTensor<half> xs, ds, ys;
  xs.SetGlobalBuffer((__gm__ half*)x + first, count);
  ds.SetGlobalBuffer((__gm__ half*)d + first / kRow, count / kRow);
  ys.SetGlobalBuffer((__gm__ half*)y + first, count);
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in, divisors;
  TQue<TPosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, kPiece * sizeof(half));
  pipe.InitBuffer(divisors, 2, kPiece / kRow * sizeof(half));
  pipe.InitBuffer(out, 2, kPiece * sizeof(half));
  for (uint32_t at = 0; at < count; at += kPiece) {
    LocalTensor<half> a = in.AllocTensor<half>(), b = divisors.AllocTensor<half>();
    DataCopy(a, xs[at], kPiece);
    in.EnQue(a);
    DataCopy(b, ds[at / kRow], kPiece / kRow);
    divisors.EnQue(b);
    a = in.DeQue<half>();
    b = divisors.DeQue<half>();
    LocalTensor<half> c = out.AllocTensor<half>();
    for (uint32_t row = 0; row < kPiece / kRow; row++) {
      LocalTensor<half> to = c[row * kRow];
      Duplicate(to, b.GetValue(row), kRow);
      Div(to, a[row * kRow], to, kRow);
    }
    out.EnQue(c);
    in.FreeTensor(a);
    divisors.FreeTensor(b);
    c = out.DeQue<half>();
    DataCopy(ys[at], c, kPiece);
    out.FreeTensor(c);
  }
}
