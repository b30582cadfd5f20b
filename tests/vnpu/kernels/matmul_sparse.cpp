// A Matmul whose B is sparse, and two Matmuls that take turns in L1.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

namespace {

template <typename T>
GlobalTensor<T> global(GM_ADDR p) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p));
  return t;
}

using Whole = MatmulType<TPosition::GM, CubeFormat::ND, int8_t>;
using Sums = MatmulType<TPosition::GM, CubeFormat::ND, int32_t>;
template <CubeFormat format>
using Sparse = SparseMatmulType<TPosition::GM, TPosition::GM, format, int8_t, true>;

template <CubeFormat format>
__aicore__ inline void sparse_product(GM_ADDR a, GM_ADDR b, GM_ADDR places, GM_ADDR bias, GM_ADDR c, TCubeTiling t,
                                      uint32_t places_too) {
  TPipe pipe;
  Matmul<Whole, Sparse<format>, Sums, Sums, CFG_MDL> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  mm.SetTensorA(global<int8_t>(a));
  mm.SetTensorB(global<int8_t>(b), true);
  if (places_too) mm.SetSparseIndex(global<uint8_t>(places));
  if (t.isBias) mm.SetBias(global<int32_t>(bias));
  mm.IterateAll(global<int32_t>(c));
  mm.End();
}

using Rows = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Floats = MatmulType<TPosition::GM, CubeFormat::ND, float>;

}  // namespace

extern "C" __global__ __cube__ void sparse_rows(GM_ADDR a, GM_ADDR b, GM_ADDR places, GM_ADDR bias, GM_ADDR c,
                                                TCubeTiling t, uint32_t places_too) {
  sparse_product<CubeFormat::ND>(a, b, places, bias, c, t, places_too);
}

extern "C" __global__ __cube__ void sparse_tiles(GM_ADDR a, GM_ADDR b, GM_ADDR places, GM_ADDR bias, GM_ADDR c,
                                                 TCubeTiling t, uint32_t places_too) {
  sparse_product<CubeFormat::NZ>(a, b, places, bias, c, t, places_too);
}

// Four products of two objects in turn, each the whole c of its own; `ends`: whether an object says that it is done.
extern "C" __global__ __cube__ void in_turn(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, TCubeTiling t,
                                            TCubeTiling other, uint32_t ends) {
  TPipe pipe;
  Matmul<Rows, Rows, Floats, Floats> one, two;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), one, &t, two, &other);
  GlobalTensor<float> result = global<float>(c);
  for (uint32_t i = 0; i < 2; i++) {
    one.SetTensorA(global<half>(a));
    one.SetTensorB(global<half>(b));
    one.SetBias(global<float>(bias));
    one.IterateAll(result[2 * i * t.M * t.N]);
    if (ends) one.End();
    two.SetTensorA(global<half>(a));
    two.SetTensorB(global<half>(b));
    two.SetBias(global<float>(bias));
    two.IterateAll(result[(2 * i + 1) * t.M * t.N]);
    if (ends) two.End();
  }
}
