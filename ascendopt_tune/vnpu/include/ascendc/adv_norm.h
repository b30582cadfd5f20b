// LayerNorm in its two forms, Normalize, and Welford's steps. What a tiling says of pieces splits the modelled time and
// the temporary memory; values don't depend on it.
#pragma once
#include "adv_compose.h"
#include "kernel_tiling/norm_tiling_data.h"
#include "kernel_tiling/reduce_pattern.h"
#include "vnpu/adv_norm.h"

namespace AscendC {

using tiling::LayerNormSeparateTiling;
using tiling::LayerNormTiling;

struct LayerNormConfig {
  bool isNoBeta = false;
  bool isNoGamma = false;
  bool isOnlyOutput = false;
  bool isOutputRstd = true;
};
constexpr LayerNormConfig LNCFG_NORM = {false, false, false, true};
struct LayerNormPara {
  uint32_t aLength, rLength, rLengthWithPadding;
};

struct NormalizeConfig {
  ReducePattern reducePattern = ReducePattern::AR;
  int32_t aLength = -1;
  bool isNoBeta = false;
  bool isNoGamma = false;
  bool isOnlyOutput = false;
};
constexpr NormalizeConfig NLCFG_NORM = {ReducePattern::AR, -1, false, false, false};
constexpr NormalizeConfig NLCFG_NOBETA = {ReducePattern::AR, -1, true, false, false};
constexpr NormalizeConfig NLCFG_NOGAMMA = {ReducePattern::AR, -1, false, true, false};
constexpr NormalizeConfig NLCFG_NOOPT = {ReducePattern::AR, -1, true, true, false};
struct NormalizePara {
  uint32_t aLength, rLength, rLengthWithPadding;
};

struct WelfordUpdateConfig {
  ASCENDC_INLINE constexpr WelfordUpdateConfig(const bool isInplaceIn) : isInplace(isInplaceIn) {}
  bool isInplace = false;
};
constexpr WelfordUpdateConfig WFUPDATE_DEFAULT_CFG = {false};
struct WelfordUpdateParam {
  uint32_t rnLength, abLength, abComputeLength;
  float nRec;
};

struct WelfordFinalizeConfig {
  ASCENDC_INLINE constexpr WelfordFinalizeConfig(const bool isCorrectionIn) : isCorrection(isCorrectionIn) {}
  bool isCorrection = false;
};
constexpr WelfordFinalizeConfig WFFINALIZE_DEFAULT_CFG = {false};
struct WelfordFinalizePara {
  uint32_t rnLength, abLength, headCount, headCountLength, tailCount, tailCountLength;
  float abRec, rRec;
};

namespace detail {

ASCENDC_INLINE vnpu::Scratch scratch(const LocalTensor<uint8_t>& given) { return {given.pointer(), given.GetSize()}; }
ASCENDC_INLINE vnpu::Scratch scratch() { return {vnpu::local_rest(), vnpu::local_rest_bytes()}; }

template <typename T>
constexpr bool half_or_float = std::is_same_v<T, half> || std::is_same_v<T, float>;
// gamma and beta are as exact as what they scale, or more so.
template <typename U, typename T>
constexpr bool norm_types = half_or_float<T> && (std::is_same_v<U, T> || std::is_same_v<U, float>);

// With `reuse` floats keep a third of their temporary values in the source.
template <typename Tiling>
ASCENDC_INLINE vnpu::NormPieces three_pieces(const Tiling& t, bool reuse) {
  return {t.tmpBufSize, (reuse ? t.secondTmpStartPos : t.thirdTmpStartPos) + t.oneTmpSize, t.oneTmpSize};
}

template <typename T, typename Tiling>
ASCENDC_INLINE vnpu::LayerNorm layer_norm(const LocalTensor<T>& dst, const LocalTensor<T>& mean,
                                          const LocalTensor<T>& variance, const LocalTensor<T>& src,
                                          const LocalTensor<T>& gamma, const LocalTensor<T>& beta, vnpu::Scratch work,
                                          T epsilon, const Tiling& tiling, bool reuse) {
  static_assert(half_or_float<T>, "LayerNorm and DeepNorm take half and float");
  vnpu::LayerNorm n;
  n.dst = dst.pointer();
  n.mean = mean.pointer();
  n.variance = variance.pointer();
  n.src = src.pointer();
  n.gamma = gamma.pointer();
  n.beta = beta.pointer();
  n.work = work;
  n.pieces = three_pieces(tiling, reuse);
  n.dtype = vnpu::dtype_of<T>();
  n.rows = tiling.bLength * tiling.sLength;
  n.columns = tiling.hLength;
  n.reciprocal = tiling.lastDimValueBack;
  n.epsilon = static_cast<float>(epsilon);
  n.reuse = reuse;
  return n;
}

template <typename U, typename T, typename Para>
ASCENDC_INLINE vnpu::Normalize normalize(const LocalTensor<T>& dst, const LocalTensor<float>& rstd,
                                         const LocalTensor<float>& mean, const LocalTensor<T>& src,
                                         const LocalTensor<U>* gamma, const LocalTensor<U>* beta, vnpu::Scratch work,
                                         float epsilon, const Para& para) {
  static_assert(norm_types<U, T>, "T is half or float, and gamma's and beta's type U is T or float");
  vnpu::Normalize n;
  n.dst = dst.pointer();
  n.rstd = rstd.pointer();
  n.mean = mean.pointer();
  n.src = src.pointer();
  n.gamma = gamma ? gamma->pointer() : nullptr;
  n.beta = beta ? beta->pointer() : nullptr;
  n.work = work;
  n.dtype = vnpu::dtype_of<T>();
  n.weights = vnpu::dtype_of<U>();
  n.rows = para.aLength;
  n.columns = para.rLength;
  n.stride = para.rLengthWithPadding;
  n.epsilon = epsilon;
  return n;
}

template <typename Tiling>
ASCENDC_INLINE void layer_norm_rstd(const vnpu::Normalize& n, const Tiling& tiling) {
  vnpu::LayerNormRstd l;
  l.n = n;
  l.pieces = {tiling.tmpBufSize, tiling.secondTmpStartPos + tiling.oneTmpSize, tiling.oneTmpSize};
  l.counted = tiling.aLength;
  l.first = tiling.firstTmpStartPos;
  l.reciprocal = tiling.rValueBack;
  if (tiling.oneTmpSize != 0 && (n.columns != tiling.rLength || n.stride * tiling.aLength != tiling.inputXSize))
    vnpu::misuse("LayerNorm", "para.rLength and rLengthWithPadding have to be those of the tiling");
  vnpu::layer_norm_rstd(l);
}

}  // namespace detail

// ---- LayerNorm: output, means and variances of [B, S, H] ----

// `Tiling` is LayerNormTiling.
template <typename T, bool isReuseSource = false, typename Tiling>
ASCENDC_INLINE void LayerNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                              const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                              const LocalTensor<T>& gamma, const LocalTensor<T>& beta,
                              const LocalTensor<uint8_t>& sharedTmpBuffer, const T epsilon, const Tiling& tiling) {
  vnpu::layer_norm(detail::layer_norm(output, outputMean, outputVariance, inputX, gamma, beta,
                                      detail::scratch(sharedTmpBuffer), epsilon, tiling, isReuseSource));
}
template <typename T, bool isReuseSource = false, typename Tiling>
ASCENDC_INLINE void LayerNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                              const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                              const LocalTensor<T>& gamma, const LocalTensor<T>& beta, const T epsilon,
                              const Tiling& tiling) {
  vnpu::layer_norm(detail::layer_norm(output, outputMean, outputVariance, inputX, gamma, beta, detail::scratch(),
                                      epsilon, tiling, isReuseSource));
}

// ---- LayerNorm: output, means and 1 / sqrt(variance + epsilon) of [A, R] ----

// `Tiling` is LayerNormSeparateTiling.
#define VNPU_LAYER_NORM_RSTD(PARAMETERS, WORK)                                                                       \
  template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig& config = LNCFG_NORM,          \
            typename Tiling>                                                                                         \
  ASCENDC_INLINE void LayerNorm(const LocalTensor<T>& output, const LocalTensor<float>& outputMean,                  \
                                const LocalTensor<float>& outputRstd, const LocalTensor<T>& inputX,                  \
                                const LocalTensor<U>& gamma, const LocalTensor<U>& beta, const float epsilon,        \
                                PARAMETERS const LayerNormPara& para, const Tiling& tiling) {                        \
    static_assert(!config.isOnlyOutput, "LayerNorm: isOnlyOutput has to be false");                                  \
    static_assert(config.isOutputRstd, "LayerNorm doesn't put out the variance on architecture 2201: isOutputRstd"); \
    detail::layer_norm_rstd(                                                                                         \
        detail::normalize(output, outputRstd, outputMean, inputX, config.isNoGamma ? nullptr : &gamma,               \
                          config.isNoBeta ? nullptr : &beta, WORK, epsilon, para),                                   \
        tiling);                                                                                                     \
  }
#define VNPU_SHARED const LocalTensor<uint8_t>&sharedTmpBuffer,
VNPU_LAYER_NORM_RSTD(VNPU_SHARED, detail::scratch(sharedTmpBuffer))
VNPU_LAYER_NORM_RSTD(, detail::scratch())
#undef VNPU_LAYER_NORM_RSTD

// ---- Normalize ----

#define VNPU_NORMALIZE(PARAMETERS, WORK)                                                                               \
  template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig& config = NLCFG_NORM>            \
  ASCENDC_INLINE void Normalize(const LocalTensor<T>& output, const LocalTensor<float>& outputRstd,                    \
                                const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,          \
                                const LocalTensor<T>& inputX, const LocalTensor<U>& gamma, const LocalTensor<U>& beta, \
                                PARAMETERS const float epsilon, const NormalizePara& para) {                           \
    static_assert(config.reducePattern == ReducePattern::AR, "Normalize: reducePattern has to be AR");                 \
    static_assert(!config.isOnlyOutput, "Normalize: isOnlyOutput has to be false");                                    \
    static_assert(config.aLength != 1, "Normalize: aLength of 1 does not exist on architecture 2201");                 \
    if (config.aLength != -1 && static_cast<uint32_t>(config.aLength) != para.aLength)                                 \
      vnpu::misuse("Normalize", "config.aLength has to be -1 or para.aLength");                                        \
    vnpu::Normalize n = detail::normalize(output, outputRstd, inputMean, inputX, config.isNoGamma ? nullptr : &gamma,  \
                                          config.isNoBeta ? nullptr : &beta, WORK, epsilon, para);                     \
    n.variance = inputVariance.pointer();                                                                              \
    vnpu::normalize(n);                                                                                                \
  }
VNPU_NORMALIZE(VNPU_SHARED, detail::scratch(sharedTmpBuffer))
VNPU_NORMALIZE(, detail::scratch())
#undef VNPU_NORMALIZE

// ---- WelfordUpdate and WelfordFinalize ----

#define VNPU_WELFORD_UPDATE(PARAMETERS, WORK)                                                                  \
  template <typename T, typename U, bool isReuseSource = false,                                                \
            const WelfordUpdateConfig& config = WFUPDATE_DEFAULT_CFG>                                          \
  ASCENDC_INLINE void WelfordUpdate(const LocalTensor<U>& outputMean, const LocalTensor<U>& outputVariance,    \
                                    const LocalTensor<U>& inputMean, const LocalTensor<U>& inputVariance,      \
                                    const LocalTensor<T>& inputX, PARAMETERS const WelfordUpdateParam& para) { \
    static_assert(detail::half_or_float<T> && std::is_same_v<U, float>,                                        \
                  "WelfordUpdate takes half and float, and float for mean and variance");                      \
    vnpu::WelfordUpdate w;                                                                                     \
    w.mean = outputMean.pointer();                                                                             \
    w.variance = outputVariance.pointer();                                                                     \
    w.src = inputX.pointer();                                                                                  \
    w.in_mean = inputMean.pointer();                                                                           \
    w.in_variance = inputVariance.pointer();                                                                   \
    w.work = WORK;                                                                                             \
    w.dtype = vnpu::dtype_of<T>();                                                                             \
    w.rows = para.rnLength;                                                                                    \
    w.columns = para.abLength;                                                                                 \
    w.compute = para.abComputeLength;                                                                          \
    w.reciprocal = para.nRec;                                                                                  \
    w.reuse = isReuseSource;                                                                                   \
    w.in_place = config.isInplace;                                                                             \
    vnpu::welford_update(w);                                                                                   \
  }
VNPU_WELFORD_UPDATE(VNPU_SHARED, detail::scratch(sharedTmpBuffer))
VNPU_WELFORD_UPDATE(, detail::scratch())
#undef VNPU_WELFORD_UPDATE

#define VNPU_WELFORD_FINALIZE(COUNTS_PARAMETER, COUNTS, PARAMETERS, WORK)                                             \
  template <bool isReuseSource = false, const WelfordFinalizeConfig& config = WFFINALIZE_DEFAULT_CFG>                 \
  ASCENDC_INLINE void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance, \
                                      const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,   \
                                      COUNTS_PARAMETER PARAMETERS const WelfordFinalizePara& para) {                  \
    static_assert(!config.isCorrection, "WelfordFinalize has no correction on architecture 2201: isCorrection");      \
    vnpu::WelfordFinalize w;                                                                                          \
    w.mean = outputMean.pointer();                                                                                    \
    w.variance = outputVariance.pointer();                                                                            \
    w.in_mean = inputMean.pointer();                                                                                  \
    w.in_variance = inputVariance.pointer();                                                                          \
    w.counts = COUNTS;                                                                                                \
    w.work = WORK;                                                                                                    \
    w.rounds = para.rnLength;                                                                                         \
    w.columns = para.abLength;                                                                                        \
    w.head_count = para.headCount;                                                                                    \
    w.head = para.headCountLength;                                                                                    \
    w.tail_count = para.tailCount;                                                                                    \
    w.tail = para.tailCountLength;                                                                                    \
    w.of_columns = para.abRec;                                                                                        \
    w.of_all = para.rRec;                                                                                             \
    vnpu::welford_finalize(w);                                                                                        \
  }
#define VNPU_COUNTS const LocalTensor<int32_t>&counts,
VNPU_WELFORD_FINALIZE(VNPU_COUNTS, counts.pointer(), VNPU_SHARED, detail::scratch(sharedTmpBuffer))
VNPU_WELFORD_FINALIZE(VNPU_COUNTS, counts.pointer(), , detail::scratch())
VNPU_WELFORD_FINALIZE(, nullptr, VNPU_SHARED, detail::scratch(sharedTmpBuffer))
VNPU_WELFORD_FINALIZE(, nullptr, , detail::scratch())
#undef VNPU_WELFORD_FINALIZE
#undef VNPU_COUNTS
#undef VNPU_SHARED

}  // namespace AscendC
