// All of C to the Unified Buffer, twice: the second product is added to the first there. `ordered`: the kernel says
// that V is through with the buffer that the second one comes to.
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
template <const auto& MM_CFG, typename IMPL, typename A_TYPE, typename B_TYPE, typename C_TYPE, typename BIAS_TYPE>
struct OwnPolicy : AscendC::Impl::Detail::MatmulPolicy<MM_CFG, IMPL, A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE> {};

// Two objects with a policy of the kernel's, registered with tilings that it has by a restricted pointer, as CANN's own
// operators do.
extern "C" __global__ __mix__(1, 1) void restricted(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t) {
  TPipe pipe;
  const TCubeTiling* __restrict first = &t;
  const TCubeTiling* __restrict second = &t;
  Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half>, MatmulType<TPosition::GM, CubeFormat::ND, half, true>,
         MatmulType<TPosition::GM, CubeFormat::ND, float>, MatmulType<TPosition::GM, CubeFormat::ND, float>, CFG_NORM,
         MatmulCallBackFunc<nullptr, nullptr, nullptr>, OwnPolicy>
      one, other;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), one, first, other, second);
  GlobalTensor<half> left, right;
  GlobalTensor<float> result;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(out));
  one.SetTensorA(left);
  one.SetTensorB(right, true);
  one.IterateAll(result);
  one.End();
  other.SetTensorA(right);
  other.SetTensorB(left, true);
  other.IterateAll(result[t.M * t.N]);
  other.End();
}
// Both vector cores of a group ask for one product and bring half of it each to `out`; `waits`: both say that they
// wait.
template <bool shares>
__aicore__ inline void half_each(GM_ADDR a, GM_ADDR b, GM_ADDR product, GM_ADDR out, TCubeTiling t, uint32_t waits) {
  TPipe pipe;
  Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half, false, LayoutMode::NONE, shares>,
         MatmulType<TPosition::GM, CubeFormat::ND, half, true, LayoutMode::NONE, shares>,
         MatmulType<TPosition::GM, CubeFormat::ND, float>>
      mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  const uint32_t half_of_it = static_cast<uint32_t>(t.M * t.N / 2), first = GetSubBlockIdx() * half_of_it;
  GlobalTensor<half> left, right;
  GlobalTensor<float> made, result;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  made.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(product));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(out));
  TBuf<> memory;
  pipe.InitBuffer(memory, half_of_it * sizeof(float));
  LocalTensor<float> held = memory.Get<float>();
  if (shares) {  // each brings half of A: the product begins behind both
    GlobalTensor<half> brought;
    brought.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(out));
    LocalTensor<half> part = memory.Get<half>();
    const uint32_t half_of_a = static_cast<uint32_t>(t.M * t.Ka / 2), at = GetSubBlockIdx() * half_of_a;
    DataCopy(part, left[at], half_of_a);
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID3);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID3);
    DataCopy(brought[at], part, half_of_a);
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID3);
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID3);
    left = brought;
  }
  mm.SetTensorA(left);
  mm.SetTensorB(right, true);
  mm.template IterateAll<false>(made, 0, false, true);
  if (waits || GetSubBlockIdx() == 0) mm.WaitIterateAll();
  DataCopy(held, made[first], half_of_it);
  SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID3);
  WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID3);
  DataCopy(result[first], held, half_of_it);
  mm.End();
}
extern "C" __global__ __mix__(1, 2) void shared(GM_ADDR a, GM_ADDR b, GM_ADDR product, GM_ADDR out, TCubeTiling t,
                                                uint32_t waits) {
  half_each<true>(a, b, product, out, t, waits);
}
extern "C" __global__ __mix__(1, 2) void not_shared(GM_ADDR a, GM_ADDR b, GM_ADDR product, GM_ADDR out, TCubeTiling t,
                                                    uint32_t waits) {
  half_each<false>(a, b, product, out, t, waits);
}
extern "C" __global__ __mix__(1, 2) void shared_block(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t) {
  TPipe pipe;
  Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half, false, LayoutMode::NONE, true>,
         MatmulType<TPosition::GM, CubeFormat::ND, half, false, LayoutMode::NONE, true>,
         MatmulType<TPosition::GM, CubeFormat::ND, float>>
      mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  GlobalTensor<half> left, right;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  mm.SetTensorA(left);
  mm.SetTensorB(right);
  mm.Iterate();
}
