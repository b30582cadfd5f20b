// One block of C by itself (IterateAll with enSequentialWrite).
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

using Left = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Right = MatmulType<TPosition::GM, CubeFormat::ND, half, true>;
using Rows = MatmulType<TPosition::GM, CubeFormat::ND, float>;

// One block of C, whose rows follow each other although C's own are longer.
template <bool sync>
__aicore__ inline void one_block(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t) {
  TPipe pipe;
  Matmul<Left, Right, Rows> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  GlobalTensor<half> left, right;
  GlobalTensor<float> result;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(out));
  mm.SetTensorA(left);
  mm.SetTensorB(right, true);
  mm.template IterateAll<sync>(result, 0, true, !sync);
  if constexpr (!sync) mm.WaitIterateAll();
  mm.End();
}
extern "C" __global__ __mix__(1, 1) void by_itself(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t) {
  one_block<true>(a, b, out, t);
}
extern "C" __global__ __mix__(1, 1) void waited_for_later(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t) {
  one_block<false>(a, b, out, t);
}
