// All of C to the Unified Buffer, twice: the second product is added to the first there. `ordered`: the kernel says that
// V is through with the buffer that the second one comes to.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

template <typename T>
__aicore__ inline void two_products(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t ordered) {
  TPipe pipe;
  Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half>, MatmulType<TPosition::GM, CubeFormat::ND, half, true>,
         MatmulType<TPosition::VECCALC, CubeFormat::ND, T>>
      mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  const uint32_t all = static_cast<uint32_t>(t.M * t.N);
  GlobalTensor<half> left, right;
  GlobalTensor<T> result;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(out));
  TBuf<> memory;
  pipe.InitBuffer(memory, 2 * all * sizeof(T));
  LocalTensor<T> product = memory.Get<T>(), sum = product[all];
  product.SetSize(all);
  mm.SetTensorA(left);
  mm.SetTensorB(right, true);
  mm.IterateAll(product);
  Adds(sum, product, static_cast<T>(0), static_cast<int32_t>(all));
  if (ordered) {
    SetFlag<HardEvent::V_MTE2>(EVENT_ID3);
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID3);
  }
  mm.SetTensorA(left);
  mm.IterateAll(product);
  PipeBarrier<PIPE_V>();
  Add(sum, sum, product, static_cast<int32_t>(all));
  SetFlag<HardEvent::V_MTE3>(EVENT_ID3);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID3);
  DataCopy(result, sum, all);
  mm.End();
}

extern "C" __global__ __mix__(1, 1) void in_half(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t ordered) {
  two_products<half>(a, b, out, t, ordered);
}
extern "C" __global__ __mix__(1, 1) void in_float(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t ordered) {
  two_products<float>(a, b, out, t, ordered);
}
