// z = x + y through queues of two buffers, a share of the elements to each core, in pieces: the example of CANN's
// documentation. The tiling data are the elements of all cores and the pieces of a core.
//   T  element type
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

struct Tiling {
  uint32_t total, pieces;
};

extern "C" __global__ __aicore__ void add_queue(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  const uint32_t share = t.total / GetBlockNum(), n = share / t.pieces;
  GlobalTensor<T> xs, ys, zs;
  xs.SetGlobalBuffer((__gm__ T*)x + share * GetBlockIdx(), share);
  ys.SetGlobalBuffer((__gm__ T*)y + share * GetBlockIdx(), share);
  zs.SetGlobalBuffer((__gm__ T*)z + share * GetBlockIdx(), share);
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in_x, in_y;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in_x, 2, n * sizeof(T));
  pipe.InitBuffer(in_y, 2, n * sizeof(T));
  pipe.InitBuffer(out, 2, n * sizeof(T));
  for (uint32_t i = 0; i < t.pieces; i++) {
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
