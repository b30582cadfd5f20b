// params: call, dtype, then per call; see the cases
#include "api_kernel.h"

struct LogSoftMaxTiling {};
struct RmsNormTiling {
  uint32_t bLength, sLength, hLength;
  float reciprocalOfHLength;
  uint32_t mainBshLength;
};
constexpr CumSumConfig FIRST = {false, false, true}, LAST = {true, false, true}, FIRST_ALONE = {false, false, false};

template <typename T, typename Axis>
__aicore__ inline void reduce(Params p) {  // rows, columns, operation, room: 0 none, 1 given, 2 the source's
  LocalTensor<T> d = output<T>(), s = input<T>();
  LocalTensor<uint8_t> w = work<uint8_t>();
  uint32_t shape[2] = {uint32_t(p[2]), uint32_t(p[3])};
  const bool padded = p[6] == 0;
  if constexpr (sizeof(T) == 4) {
    if (p[4] == 2 && p[5] == 0) return ReduceProd<T, Axis>(d, s, shape, padded);
    if (p[4] == 2 && p[5] == 1) return ReduceProd<T, Axis>(d, s, w, shape, padded);
    if (p[4] == 2) return ReduceProd<T, Axis, true>(d, s, w, shape, padded);
    if (p[4] == 3 && p[5] == 0) return ReduceSum<T, Axis>(d, s, shape, padded);
    if (p[4] == 3 && p[5] == 1) return ReduceSum<T, Axis>(d, s, w, shape, padded);
    if (p[4] == 3) return ReduceSum<T, Axis, true>(d, s, w, shape, padded);
  }
  if (p[4] == 0 && p[5] == 0) return ReduceMax<T, Axis>(d, s, shape, padded);
  if (p[4] == 0 && p[5] == 1) return ReduceMax<T, Axis>(d, s, w, shape, padded);
  if (p[4] == 0) return ReduceMax<T, Axis, true>(d, s, w, shape, padded);
  if (p[5] == 0) return ReduceMin<T, Axis>(d, s, shape, padded);
  if (p[5] == 1) return ReduceMin<T, Axis>(d, s, w, shape, padded);
  return ReduceMin<T, Axis, true>(d, s, w, shape, padded);
}

template <typename T>
__aicore__ inline void call(Params p) {
  LocalTensor<T> d = output<T>(), s = input<T>();
  LocalTensor<uint8_t> w = work<uint8_t>();
  switch (p[0]) {
    case 0:
      return reduce<T, Pattern::Reduce::AR>(p);
    case 1:
      return reduce<T, Pattern::Reduce::RA>(p);
    case 2: {  // rows, columns, valid columns
      SoftMaxShapeInfo shape{uint32_t(p[2]), uint32_t(p[3]), uint32_t(p[2]), uint32_t(p[4])};
      return LogSoftMax<T>(d, output<T>(49152), output<T>(57344), s, w, LogSoftMaxTiling{}, shape);
    }
    case 3: {  // rows, columns, with room, tiled; gamma stands behind the source
      RmsNormTiling tiling{1, uint32_t(p[2]), uint32_t(p[3]), 1.0f / p[3], uint32_t(p[5])};
      LocalTensor<T> gamma = input<T>(32768);
      if (p[4]) return RmsNorm<T>(d, s, gamma, w, T(1e-5f), tiling);
      return RmsNorm<T>(d, s, gamma, T(1e-5f), tiling);
    }
    case 4: {  // outer, inner, which
      CumSumInfo info{uint32_t(p[2]), uint32_t(p[3])};
      LocalTensor<T> last = output<T>(49152);
      if (p[4] == 0) return CumSum<T, FIRST>(d, last, s, w, info);
      if (p[4] == 1) return CumSum<T, LAST>(d, last, s, info);
      return CumSum<T, FIRST_ALONE>(d, last, s, info);
    }
  }
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) { p[1] == 1 ? call<half>(p) : call<float>(p); });
}
