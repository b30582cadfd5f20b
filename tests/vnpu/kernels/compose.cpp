// params: call, dtype, then per call; see the cases
#include "api_kernel.h"

template <typename T>
__aicore__ inline void call(Params p) {
  LocalTensor<T> d = output<T>(), s = input<T>();
  LocalTensor<uint8_t> w = work<uint8_t>();
  if (p[6]) w.SetSize(p[6]);
  uint32_t dst_shape[2] = {uint32_t(p[2]), uint32_t(p[3])}, src_shape[2] = {uint32_t(p[4]), uint32_t(p[5])};
  switch (p[0]) {
    case 0:
      return BroadCast<T, 2, 0>(d, s, dst_shape, src_shape);
    case 1:
      return Broadcast<T, 2, 1>(d, s, dst_shape, src_shape, w);
    case 2:
      return Broadcast<T, 1, 0>(d, s, dst_shape, src_shape);
    case 3:  // outer, inner, n
      return p[5] ? Sum(d, s, w, SumParams{uint32_t(p[2]), uint32_t(p[3]), uint32_t(p[4])})
                  : Sum(d, s, SumParams{uint32_t(p[2]), uint32_t(p[3]), uint32_t(p[4])});
    case 4:
      return Mean<T>(d, s, w, MeanParams{uint32_t(p[2]), uint32_t(p[3]), uint32_t(p[4])});
    case 5:
      return Mean<T, float>(d, s, w, MeanParams{uint32_t(p[2]), uint32_t(p[3]), uint32_t(p[4])});
    case 6: {  // rows, columns, valid columns
      SoftMaxShapeInfo shape{uint32_t(p[2]), uint32_t(p[3]), uint32_t(p[2]), uint32_t(p[4])};
      if (p[5] == 0) return SoftMax<T>(d, s, SoftMaxTiling{}, shape);
      if (p[5] == 1) return SoftMax<T>(d, s, w, SoftMaxTiling{}, shape);
      return SoftMax<T>(d, output<T>(49152), output<T>(57344), s, SoftMaxTiling{}, shape);
    }
  }
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) { p[1] == 1 ? call<half>(p) : call<float>(p); });
}
