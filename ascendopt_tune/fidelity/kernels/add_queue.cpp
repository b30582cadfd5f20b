// z = x + y through queues, a share of the elements to each core, in pieces: the example of CANN's documentation. All lengths
// are known when it is compiled.
//   T         element type
//   BUFFERS   of each queue
//   ELEMENTS  of a piece
//   PIECES    of a core
#include "kernel_operator.h"

#ifndef BUFFERS
#define BUFFERS 2
#endif

using namespace AscendC;

extern "C" __global__ __aicore__ void add_queue(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  constexpr uint32_t n = ELEMENTS, share = n * PIECES;
  GlobalTensor<T> xs, ys, zs;
  xs.SetGlobalBuffer((__gm__ T*)x + share * GetBlockIdx(), share);
  ys.SetGlobalBuffer((__gm__ T*)y + share * GetBlockIdx(), share);
  zs.SetGlobalBuffer((__gm__ T*)z + share * GetBlockIdx(), share);
  TPipe pipe;
  TQue<QuePosition::VECIN, BUFFERS> in_x, in_y;
  TQue<QuePosition::VECOUT, BUFFERS> out;
  pipe.InitBuffer(in_x, BUFFERS, n * sizeof(T));
  pipe.InitBuffer(in_y, BUFFERS, n * sizeof(T));
  pipe.InitBuffer(out, BUFFERS, n * sizeof(T));
  for (uint32_t i = 0; i < PIECES; i++) {
    LocalTensor<T> a = in_x.AllocTensor<T>(), b = in_y.AllocTensor<T>();
    DataCopy(a, xs[i * n], n);
    DataCopy(b, ys[i * n], n);
    in_x.EnQue(a);
    in_y.EnQue(b);
    a = in_x.DeQue<T>();
    b = in_y.DeQue<T>();
    LocalTensor<T> c = out.AllocTensor<T>();
    Add(c, a, b, n);
    out.EnQue(c);
    in_x.FreeTensor(a);
    in_y.FreeTensor(b);
    c = out.DeQue<T>();
    DataCopy(zs[i * n], c, n);
    out.FreeTensor(c);
  }
}
