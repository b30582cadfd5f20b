// z = x == y of half, a byte of 0 or 1 for every element: Compare makes a bit of each of 128 elements, and the scalar
// unit takes them apart, backwards in place. A share to each core in pieces of 8192; tiling data as tiles.cpp has them.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kPiece = 8192, kChunk = 128, kByte = 8;

extern "C" __global__ __aicore__ void bits_by_scalars(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR tiling) {
  GlobalTensor<uint32_t> words;
  words.SetGlobalBuffer((__gm__ uint32_t*)tiling, 2);
  const uint32_t share = words.GetValue(0), core = GetBlockIdx();
  const uint32_t count = core + 1 < GetBlockNum() ? share : words.GetValue(1), first = core * share;
  GlobalTensor<half> xs, ys;
  GlobalTensor<uint8_t> zs;
  xs.SetGlobalBuffer((__gm__ half*)x + first, count);
  ys.SetGlobalBuffer((__gm__ half*)y + first, count);
  zs.SetGlobalBuffer((__gm__ uint8_t*)z + first, count);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in_x, in_y;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in_x, 2, kPiece * sizeof(half));
  pipe.InitBuffer(in_y, 2, kPiece * sizeof(half));
  pipe.InitBuffer(out, 2, kPiece);
  for (uint32_t at = 0; at < count; at += kPiece) {
    LocalTensor<half> a = in_x.AllocTensor<half>(), b = in_y.AllocTensor<half>();
    DataCopy(a, xs[at], kPiece);
    DataCopy(b, ys[at], kPiece);
    in_x.EnQue(a);
    in_y.EnQue(b);
    a = in_x.DeQue<half>();
    b = in_y.DeQue<half>();
    LocalTensor<uint8_t> c = out.AllocTensor<uint8_t>();
    for (uint32_t chunk = 0; chunk < kPiece; chunk += kChunk) {
      LocalTensor<uint8_t> bytes = c[chunk];
      Compare(bytes, a[chunk], b[chunk], CMPMODE::EQ, kChunk);
      for (int32_t i = kChunk / kByte - 1; i >= 0; i--) {
        const uint8_t bits = bytes.GetValue(i);
        for (uint32_t k = 0; k < kByte; k++) bytes.SetValue(i * kByte + k, static_cast<uint8_t>(bits >> k & 1));
      }
    }
    out.EnQue(c);
    in_x.FreeTensor(a);
    in_y.FreeTensor(b);
    c = out.DeQue<uint8_t>();
    DataCopy(zs[at], c, kPiece);
    out.FreeTensor(c);
  }
}
