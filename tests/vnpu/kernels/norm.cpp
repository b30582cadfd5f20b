// params: call, dtype (1: half), bytes of the shared buffer (0: what is left behind the kernel's buffers), reuse, form,
// epsilon, then per call; from 16 on the words of a tiling
#include "api_kernel.h"

constexpr uint32_t SECOND = 24576, THIRD = 49152, FOURTH = 55296, FIFTH = 61440, SIXTH = 63488;  // of both areas
constexpr LayerNormConfig LN_PLAIN = {true, true, false, true}, LN_NO_BETA = {true, false, false, true};
constexpr WelfordUpdateConfig IN_PLACE = {true};

template <typename Tiling>
__aicore__ inline Tiling tiling_of(Params p) {
  Tiling tiling;
  __builtin_memcpy(&tiling, p.p + 16, sizeof tiling);
  return tiling;
}
__aicore__ inline LocalTensor<uint8_t> shared(Params p) {
  return LocalTensor<uint8_t>(TPosition::VECCALC, kWork, uint32_t(p[2]));
}

template <typename T, bool reuse>
__aicore__ inline void layer_norm(Params p) {  // whether the output is gamma
  auto tiling = tiling_of<tiling::LayerNormTiling>(p);
  LocalTensor<T> y = output<T>(), m = output<T>(THIRD), v = output<T>(FIFTH), x = input<T>(), g = input<T>(THIRD),
                 b = input<T>(FOURTH);
  if (p[6]) y = g;
  if (p[2]) return LayerNorm<T, reuse>(y, m, v, x, g, b, shared(p), T(p.as_float(5)), tiling);
  LayerNorm<T, reuse>(y, m, v, x, g, b, T(p.as_float(5)), tiling);
}

template <typename U, typename T, const LayerNormConfig& config>
__aicore__ inline void layer_norm_rstd(Params p) {  // a, r, r with its rest
  auto tiling = tiling_of<tiling::LayerNormSeparateTiling>(p);
  LocalTensor<T> y = output<T>(), x = input<T>();
  LocalTensor<U> g = input<U>(THIRD), b = input<U>(FOURTH);
  LocalTensor<float> m = output<float>(THIRD), v = output<float>(FIFTH);
  LayerNormPara para{uint32_t(p[6]), uint32_t(p[7]), uint32_t(p[8])};
  if (p[2]) return LayerNorm<U, T, false, config>(y, m, v, x, g, b, p.as_float(5), shared(p), para, tiling);
  LayerNorm<U, T, false, config>(y, m, v, x, g, b, p.as_float(5), para, tiling);
}

template <typename U, typename T, const NormalizeConfig& config>
__aicore__ inline void normalize(Params p) {  // a, r, r with its rest
  LocalTensor<T> y = output<T>(), x = input<T>();
  LocalTensor<U> g = input<U>(THIRD), b = input<U>(FOURTH);
  LocalTensor<float> m = input<float>(FIFTH), v = input<float>(SIXTH), rstd = output<float>(FIFTH);
  NormalizePara para{uint32_t(p[6]), uint32_t(p[7]), uint32_t(p[8])};
  if (p[2]) return Normalize<U, T, false, config>(y, rstd, m, v, x, g, b, shared(p), p.as_float(5), para);
  Normalize<U, T, false, config>(y, rstd, m, v, x, g, b, p.as_float(5), para);
}

template <typename T, bool reuse, const WelfordUpdateConfig& config>
__aicore__ inline void update(Params p) {  // rows, columns, computed, reciprocal
  LocalTensor<float> m = output<float>(), v = output<float>(SECOND), in_m = input<float>(SECOND),
                     in_v = input<float>(THIRD);
  WelfordUpdateParam para{uint32_t(p[6]), uint32_t(p[7]), uint32_t(p[8]), p.as_float(9)};
  if (p[2]) return WelfordUpdate<T, float, reuse, config>(m, v, in_m, in_v, input<T>(), shared(p), para);
  WelfordUpdate<T, float, reuse, config>(m, v, in_m, in_v, input<T>(), para);
}

__aicore__ inline void finalize(Params p) {  // with counts, rounds, columns, head count and length, tail's, reciprocal
  LocalTensor<float> m = output<float>(), v = output<float>(SECOND), in_m = input<float>(), in_v = input<float>(SECOND);
  LocalTensor<int32_t> counts = input<int32_t>(THIRD);
  WelfordFinalizePara para{uint32_t(p[7]),  uint32_t(p[8]),  uint32_t(p[9]), uint32_t(p[10]),
                           uint32_t(p[11]), uint32_t(p[12]), 1.0f / p[8],    p.as_float(13)};
  if (p[6] && p[2]) return WelfordFinalize<false>(m, v, in_m, in_v, counts, shared(p), para);
  if (p[6]) return WelfordFinalize<false>(m, v, in_m, in_v, counts, para);
  if (p[2]) return WelfordFinalize<false>(m, v, in_m, in_v, shared(p), para);
  WelfordFinalize<false>(m, v, in_m, in_v, para);
}

template <typename T>
__aicore__ inline void call(Params p) {
  const bool reuse = p[3] & 1;
  switch (p[0]) {
    case 0:
      return reuse ? layer_norm<T, true>(p) : layer_norm<T, false>(p);
    case 1:
      if (p[4] == 1) return layer_norm_rstd<float, T, LNCFG_NORM>(p);
      if (p[4] == 2) return layer_norm_rstd<T, T, LN_PLAIN>(p);
      if (p[4] == 3) return layer_norm_rstd<T, T, LN_NO_BETA>(p);
      return layer_norm_rstd<T, T, LNCFG_NORM>(p);
    case 2:
      if (p[4] == 1) return normalize<float, T, NLCFG_NORM>(p);
      if (p[4] == 2) return normalize<T, T, NLCFG_NOOPT>(p);
      if (p[4] == 3) return normalize<T, T, NLCFG_NOBETA>(p);
      return normalize<T, T, NLCFG_NORM>(p);
    case 3:
      if (p[4]) return reuse ? update<T, true, IN_PLACE>(p) : update<T, false, IN_PLACE>(p);
      return reuse ? update<T, true, WFUPDATE_DEFAULT_CFG>(p) : update<T, false, WFUPDATE_DEFAULT_CFG>(p);
    case 4:
      return finalize(p);
  }
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> both;
  const bool left = reinterpret_cast<const int32_t*>(params)[2] == 0;
  if (left) pipe.InitBuffer(both, kWork);
  run_api(in, out, params, bytes, [](Params p) { p[1] == 1 ? call<half>(p) : call<float>(p); });
}
