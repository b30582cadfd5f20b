// params: call, dtype (1: half), bytes of the shared buffer (0: what is left behind the kernel's buffers), form, rows,
// columns, valid columns, then per call; from 16 on the words of a tiling
#include "api_kernel.h"

constexpr uint32_t SECOND = 24576, THIRD = 49152, FOURTH = 53248, FIFTH = 57344;  // of both areas

__aicore__ inline tiling::SoftMaxTiling tiling_of(Params p) {
  tiling::SoftMaxTiling tiling;
  __builtin_memcpy(&tiling, p.p + 16, sizeof tiling);
  return tiling;
}
__aicore__ inline LocalTensor<uint8_t> shared(Params p) {
  return LocalTensor<uint8_t>(TPosition::VECCALC, kWork, uint32_t(p[2]));
}
__aicore__ inline SoftMaxShapeInfo shape_of(Params p) {
  return {uint32_t(p[4]), uint32_t(p[5]), uint32_t(p[4]), uint32_t(p[6])};
}

template <typename T>
__aicore__ inline void grad(Params p) {  // form: 0 SoftmaxGrad, 1 its sums, 2 SoftmaxGradFront, 3 in basic blocks
  LocalTensor<T> d = output<T>(), g = input<T>(), s = input<T>(SECOND);
  const auto tiling = tiling_of(p);
  const bool front = p[3] == 1;
  if (p[3] == 3 && p[2]) return SoftmaxGradFront<T, true>(d, g, s, shared(p), tiling, shape_of(p));
  if (p[3] >= 2 && p[2]) return SoftmaxGradFront<T>(d, g, s, shared(p), tiling, shape_of(p));
  if (p[3] >= 2) return SoftmaxGradFront<T>(d, g, s, tiling, shape_of(p));
  if (p[2]) return SoftmaxGrad<T>(d, g, s, shared(p), tiling, front, shape_of(p));
  SoftmaxGrad<T>(d, g, s, tiling, front, shape_of(p));
}

template <typename T, typename S>
__aicore__ inline void simple(Params p) {
  LocalTensor<T> d = output<T>(), x = input<T>();
  LocalTensor<S> sum = input<S>(THIRD), max = input<S>(FOURTH);
  if (p[2]) return SimpleSoftMax<T>(d, sum, max, x, shared(p), tiling_of(p), shape_of(p));
  SimpleSoftMax<T>(d, sum, max, x, tiling_of(p), shape_of(p));
}

template <typename T, typename S>
__aicore__ inline void flash(Params p) {  // whether it is an update
  LocalTensor<T> d = output<T>(), x = input<T>(), e = output<T>(FIFTH);
  LocalTensor<S> sum = output<S>(THIRD), max = output<S>(FOURTH), in_sum = input<S>(THIRD), in_max = input<S>(FOURTH);
  if (p[2]) return SoftmaxFlash<T>(d, sum, max, x, e, in_sum, in_max, shared(p), tiling_of(p), p[7] != 0, shape_of(p));
  SoftmaxFlash<T>(d, sum, max, x, e, in_sum, in_max, tiling_of(p), p[7] != 0, shape_of(p));
}

template <typename T, typename S, uint8_t step>
__aicore__ inline void adjust(Params p) {  // what is looked for, what it becomes
  LocalTensor<T> d = output<T>();
  const bool any = AdjustSoftMaxRes<T, S, false, step>(d, input<S>(), uint32_t(p[7]), T(p.as_float(8)), shape_of(p));
  output<int32_t>(FIFTH).SetValue(0, any);
}

template <typename T>
__aicore__ inline void call(Params p) {
  switch (p[0]) {
    case 0:
      return grad<T>(p);
    case 1:
      return p[3] ? simple<half, float>(p) : simple<T, T>(p);
    case 2:
      return p[3] ? flash<half, float>(p) : flash<T, T>(p);
    case 3:
      if (p[3] == 1) return adjust<T, float, 1>(p);
      if (p[3] == 2) return adjust<T, half, 0>(p);
      return adjust<T, float, 0>(p);
  }
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> both;
  const bool left = reinterpret_cast<const int32_t*>(params)[2] == 0;
  if (left) pipe.InitBuffer(both, kWork);
  run_api(in, out, params, bytes, [](Params p) { p[1] == 1 ? call<half>(p) : call<float>(p); });
}
