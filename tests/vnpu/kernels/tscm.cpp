// Matrices of vector cores in TSCM: L1 of the cube core beside them, which copies what they ask for.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

template <typename T>
__aicore__ inline GlobalTensor<T> global(GM_ADDR p) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p));
  return t;
}

using Rows = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Sums = MatmulType<TPosition::GM, CubeFormat::ND, float>;
template <TPosition from>
using Kept = MatmulType<TPosition::TSCM, CubeFormat::NZ, half, false, LayoutMode::NONE, false, from>;

// out = a x b for each of `times` matrices a that follow each other. Way 0: tiles from global memory; 1: rows from
// there, by ND2NZ; `waits`: each product is waited for before the next matrix comes to the one buffer.
extern "C" __global__ __mix__(1, 2) void from_gm(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t way,
                                                 uint32_t times, uint32_t waits) {
  TPipe pipe;
  Matmul<Kept<TPosition::GM>, Rows, Sums, Sums> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  TSCM<TPosition::GM, 1> scm;
  pipe.InitBuffer(scm, 1, t.M * t.Ka * sizeof(half));
  const uint32_t of = t.M * t.Ka, first = GetBlockIdx() * times;
  for (uint32_t i = first; i < first + times; i++) {
    LocalTensor<half> left = scm.AllocTensor<half>();
    auto from = global<half>(a)[i * of];
    if (way == 0)
      DataCopy(left, from, of);
    else
      DataCopy(left, from, Nd2NzParams{1, (uint16_t)t.M, (uint16_t)t.Ka, 0, (uint16_t)t.Ka, (uint16_t)t.M, 1, 0});
    scm.EnQue(left);
    left = scm.DeQue<half>();
    mm.SetTensorA(left);
    mm.SetTensorB(global<half>(b));
    auto c = global<float>(out)[i * t.M * t.N];
    if (waits)
      mm.IterateAll(c);
    else
      mm.template IterateAll<false>(c);
    mm.End();
    scm.FreeTensor(left);
  }
}

// out = 2a x b, by way of the Unified Buffer: as tiles (0) or rows (1).
extern "C" __global__ __mix__(1, 1) void from_ub(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t way) {
  TPipe pipe;
  Matmul<Kept<TPosition::VECOUT>, Rows, Sums, Sums> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  TQue<TPosition::VECIN, 1> arrived;
  TQue<TPosition::VECOUT, 1> leaving;
  TSCM<TPosition::VECOUT, 1> scm;
  const uint32_t of = t.M * t.Ka;
  pipe.InitBuffer(arrived, 1, of * sizeof(half));
  pipe.InitBuffer(leaving, 1, of * sizeof(half));
  pipe.InitBuffer(scm, 1, of * sizeof(half));
  LocalTensor<half> x = arrived.AllocTensor<half>(), y = leaving.AllocTensor<half>();
  DataCopy(x, global<half>(a), of);
  arrived.EnQue(x);
  x = arrived.DeQue<half>();
  Add(y, x, x, of);
  arrived.FreeTensor(x);
  leaving.EnQue(y);
  y = leaving.DeQue<half>();
  LocalTensor<half> left = scm.AllocTensor<half>();
  if (way == 0)
    DataCopy(left, y, of);
  else
    DataCopy(left, y, Nd2NzParams{1, (uint16_t)t.M, (uint16_t)t.Ka, 0, (uint16_t)t.Ka, (uint16_t)t.M, 1, 0});
  scm.EnQue(left);
  left = scm.DeQue<half>();
  mm.SetTensorA(left);
  mm.SetTensorB(global<half>(b));
  mm.IterateAll(global<float>(out));
  mm.End();
  scm.FreeTensor(left);
  leaving.FreeTensor(y);
}

// Nobody serves: there is no object.
extern "C" __global__ __mix__(1, 1) void without_object(GM_ADDR a) {
  if ASCEND_IS_AIV {
    TPipe pipe;
    TSCM<TPosition::GM, 1> scm;
    pipe.InitBuffer(scm, 1, 1024);
    DataCopy(scm.AllocTensor<half>(), global<half>(a), 512);
  }
}

// 400 KB of TSCM, above what the object holds of B.
extern "C" __global__ __mix__(1, 1) void too_much(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t) {
  TPipe pipe;
  Matmul<Kept<TPosition::GM>, Rows, Sums, Sums> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  TSCM<TPosition::GM, 1> scm;
  pipe.InitBuffer(scm, 1, 400 * 1024);
  DataCopy(scm.AllocTensor<half>(), global<half>(a), 512);
}
