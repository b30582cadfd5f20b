// Objects whose tilings only one of a mixed kernel's two programs has.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

enum class Has { Both, Cube, Vector, Neither };

// The tiling where this program has it.
template <Has who>
__aicore__ inline const TCubeTiling* seen(const TCubeTiling& t) {
#ifdef __DAV_C220_CUBE__
  return who == Has::Both || who == Has::Cube ? &t : nullptr;
#else
  return who == Has::Both || who == Has::Vector ? &t : nullptr;
#endif
}

using Rows = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Turned = MatmulType<TPosition::GM, CubeFormat::ND, half, true>;
using Sums = MatmulType<TPosition::GM, CubeFormat::ND, float>;

template <typename T>
__aicore__ inline GlobalTensor<T> global(GM_ADDR p) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p));
  return t;
}

struct Sizes {
  int32_t m, k;  // of the second product, less than its tiling says
};

// out[0] = a x b^T by the first tiling, out[1] = the first p.m rows and p.k columns of a x b by the second.
template <Has who>
__aicore__ inline void two_products(GM_ADDR a, GM_ADDR b, GM_ADDR out, const TCubeTiling& first,
                                    const TCubeTiling& second, const Sizes& p) {
  Matmul<Rows, Turned, Sums, Sums> one;
  Matmul<Rows, Rows, Sums, Sums> other;
  TPipe pipe;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), one, seen<who>(first), other, seen<who>(second));
  auto c = global<float>(out);
  one.SetTensorA(global<half>(a));
  one.SetTensorB(global<half>(b), true);
  one.template IterateAll<false>(c, 0, false, true);
  one.WaitIterateAll();
  one.End();
  other.SetOrgShape(first.M, first.N, first.Ka);
  other.SetTail(p.m, -1, p.k);
  other.SetTensorA(global<half>(a));
  other.SetTensorB(global<half>(b));
  other.IterateAll(c[first.M * first.N]);
  other.End();
}
#define TWO_PRODUCTS(NAME, WHO)                                                                                       \
  extern "C" __global__ __mix__(1, 1) void NAME(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling first, TCubeTiling second, \
                                                Sizes p) {                                                            \
    two_products<Has::WHO>(a, b, out, first, second, p);                                                              \
  }
TWO_PRODUCTS(both, Both)
TWO_PRODUCTS(only_the_cube_core, Cube)
TWO_PRODUCTS(only_the_vector_core, Vector)
TWO_PRODUCTS(neither, Neither)

// Calls for which a vector core has to know the blocks, and those for which it hasn't.
extern "C" __global__ __mix__(1, 1) void blocks(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t way) {
  using Local = MatmulType<TPosition::VECIN, CubeFormat::ND, float>;
  Matmul<Rows, Turned, Local, Sums> mm;
  TPipe pipe;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, seen<Has::Cube>(t));
  if (way == 3) mm.Init(&t);
  TQue<TPosition::VECIN, 1> arrived;
  pipe.InitBuffer(arrived, 1, t.M * t.N * sizeof(float));
  LocalTensor<float> c = arrived.AllocTensor<float>();
  auto result = global<float>(out);
  mm.SetTensorA(global<half>(a));
  mm.SetTensorB(global<half>(b), true);
  if (way == 0) {
    mm.IterateAll(c);
    PipeBarrier<PIPE_ALL>();
    DataCopy(result, c, t.M * t.N);
  } else if (way == 1 || way == 3) {
    while (mm.Iterate()) mm.GetTensorC(result);
  } else {
    mm.SetWorkspace(result);
    mm.Iterate<false>();
  }
  mm.End();
}

// B comes by the kernel's own copy, whose text the vector core's program has otherwise.
__aicore__ inline void bring_b(const LocalTensor<int8_t>& to, const __gm__ void* from, int32_t, int32_t, int32_t k, int32_t n,
                               const uint64_t, const uint64_t) {
#ifdef __DAV_C220_CUBE__
  GlobalTensor<half> b;
  b.SetGlobalBuffer((__gm__ half*)from);
  DataCopy(to.ReinterpretCast<half>(), b,
           Nd2NzParams{1, (uint16_t)n, (uint16_t)k, 0, (uint16_t)k, (uint16_t)((n + 15) / 16 * 16), 1, 0});
#endif
}
extern "C" __global__ __mix__(1, 1) void own_copy(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t) {
  Matmul<Rows, Turned, Sums, Sums, CFG_NORM, MatmulCallBackFunc<nullptr, nullptr, bring_b>> mm;
  TPipe pipe;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, seen<Has::Cube>(t));
  mm.SetTensorA(global<half>(a));
  mm.SetTensorB(global<half>(b), true);
  mm.IterateAll(global<float>(out));
  mm.End();
}

// A is in the Unified Buffer; only the cube core knows its sizes.
extern "C" __global__ __mix__(1, 1) void left_in_ub(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t) {
  Matmul<MatmulType<TPosition::VECIN, CubeFormat::ND, half>, Turned, Sums, Sums> mm;
  TPipe pipe;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, seen<Has::Cube>(t));
  TQue<TPosition::VECIN, 1> arrived;
  pipe.InitBuffer(arrived, 1, t.M * t.Ka * sizeof(half));
  LocalTensor<half> rows = arrived.AllocTensor<half>();
  DataCopy(rows, global<half>(a), t.M * t.Ka);
  arrived.EnQue(rows);
  rows = arrived.DeQue<half>();
  mm.SetTensorA(rows);
  mm.SetTensorB(global<half>(b), true);
  mm.IterateAll(global<float>(out));
  mm.End();
}
