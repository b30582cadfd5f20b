// High-level APIs over rows and columns: ReduceMax, ReduceMin, ReduceProd and ReduceSum along an axis, LogSoftMax,
// RmsNorm, CumSum.
#pragma once
#include "adv_compose.h"
#include "vnpu/adv_rows.h"

namespace AscendC {

// ---- reductions along an axis ----

// Axes of the source from the outermost: R is reduced, A stays.
namespace Pattern {
namespace Reduce {
struct AR {};
struct RA {};
}  // namespace Reduce
}  // namespace Pattern

namespace detail {
template <typename T, typename pattern, bool isReuseSource>
ASCENDC_INLINE void reduce_axis(vnpu::Fold fold, const LocalTensor<T>& dst, const LocalTensor<T>& src, void* work,
                                const uint32_t shape[], bool inner_pad, const char* api) {
  constexpr bool first_axis = std::is_same_v<pattern, Pattern::Reduce::RA>;
  static_assert(first_axis || std::is_same_v<pattern, Pattern::Reduce::AR>, "pattern is AR or RA");
  if (!inner_pad) vnpu::misuse(api, "srcInnerPad has to be true on architecture 2201");
  constexpr uint32_t per_block = 32 / sizeof(T);
  vnpu::AxisReduction r;
  r.dst = dst.pointer();
  r.src = src.pointer();
  r.work = work;
  r.dtype = vnpu::dtype_of<T>();
  r.rows = shape[0];
  r.columns = shape[1];
  r.stride = (shape[1] + per_block - 1) / per_block * per_block;
  r.first_axis = first_axis;
  r.reuse = isReuseSource;
  vnpu::reduce_axis(fold, r, api);
}
}  // namespace detail

#define VNPU_REDUCE_AXIS(NAME, FOLD, TYPES, MESSAGE)                                                                   \
  template <class T, class pattern, bool isReuseSource = false>                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                           \
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t srcShape[], bool srcInnerPad) { \
    static_assert(TYPES, MESSAGE);                                                                                     \
    detail::reduce_axis<T, pattern, isReuseSource>(vnpu::Fold::FOLD, dstTensor, srcTensor, sharedTmpBuffer.pointer(),  \
                                                   srcShape, srcInnerPad, #NAME);                                      \
  }                                                                                                                    \
  template <class T, class pattern, bool isReuseSource = false>                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                           \
                           const uint32_t srcShape[], bool srcInnerPad) {                                              \
    static_assert(TYPES, MESSAGE);                                                                                     \
    detail::reduce_axis<T, pattern, isReuseSource>(vnpu::Fold::FOLD, dstTensor, srcTensor, nullptr, srcShape,          \
                                                   srcInnerPad, #NAME);                                                \
  }
VNPU_REDUCE_AXIS(ReduceMax, Max, sizeof(T) == 2 || sizeof(T) == 4, "ReduceMax along an axis takes half and float")
VNPU_REDUCE_AXIS(ReduceMin, Min, sizeof(T) == 2 || sizeof(T) == 4, "ReduceMin along an axis takes half and float")
VNPU_REDUCE_AXIS(ReduceProd, Prod, sizeof(T) == 4, "ReduceProd takes float")
VNPU_REDUCE_AXIS(ReduceSum, Sum, sizeof(T) == 4, "ReduceSum along an axis takes float")
#undef VNPU_REDUCE_AXIS

// ---- LogSoftMax ----

// The logarithm is the decimal one, as the reference says. `Tiling` is LogSoftMaxTiling.
// Limit of LogSoftMax: not in NZ format.
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename Tiling>
ASCENDC_INLINE void LogSoftMax(const LocalTensor<T>& dst, const LocalTensor<T>& sum, const LocalTensor<T>& max,
                               const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer, const Tiling&,
                               const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(!isDataFormatNZ, "LogSoftMax in NZ format is not covered by the virtual NPU");
  detail::softmax(dst, &sum, &max, src, sharedTmpBuffer.pointer(), softmaxShapeInfo, true);
}

// ---- RmsNorm ----

namespace detail {
template <typename T, typename Tiling>
ASCENDC_INLINE void rms_norm(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& gamma,
                             void* work, T epsilon, const Tiling& tiling) {
  vnpu::RmsNorm n;
  n.dst = dst.pointer();
  n.src = src.pointer();
  n.gamma = gamma.pointer();
  n.work = work;
  n.dtype = vnpu::dtype_of<T>();
  n.rows = tiling.bLength * tiling.sLength;
  n.columns = tiling.hLength;
  n.reciprocal = tiling.reciprocalOfHLength;
  n.epsilon = static_cast<float>(epsilon);
  if (tiling.mainBshLength == 0) vnpu::misuse("RmsNorm", "tiling is empty; GetRmsNormTilingInfo fills it on the host");
  vnpu::rms_norm(n);
}
}  // namespace detail

// `Tiling` is RmsNormTiling.
template <typename T, bool isBasicBlock = false, typename Tiling>
ASCENDC_INLINE void RmsNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                            const LocalTensor<T>& gammaLocal, const LocalTensor<uint8_t>& sharedTmpBuffer,
                            const T epsilon, const Tiling& tiling) {
  detail::rms_norm(dstLocal, srcLocal, gammaLocal, sharedTmpBuffer.pointer(), epsilon, tiling);
}
template <typename T, bool isBasicBlock = false, typename Tiling>
ASCENDC_INLINE void RmsNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                            const LocalTensor<T>& gammaLocal, const T epsilon, const Tiling& tiling) {
  detail::rms_norm(dstLocal, srcLocal, gammaLocal, nullptr, epsilon, tiling);
}

// ---- CumSum ----

enum class CumSumAlgorithm { CUMSUM_ALGORITHM_LINEBYLINE = 0, CUMSUM_ALGORITHM_SKLANSKY = 1 };
struct CumSumConfig {
  bool isLastAxis{true};
  bool isReuseSource{false};
  bool outputLastRow{false};
  CumSumAlgorithm algorithm{CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
};
constexpr CumSumConfig defaultCumSumConfig = {true, false, true};
struct CumSumInfo {
  uint32_t outter{0};
  uint32_t inner{0};
};

template <typename T, const CumSumConfig& config = defaultCumSumConfig>
ASCENDC_INLINE void CumSum(LocalTensor<T>& dstTensor, LocalTensor<T>& lastRowTensor, const LocalTensor<T>& srcTensor,
                           const CumSumInfo& cumSumInfo) {
  static_assert(config.algorithm == CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE,
                "CumSum by Sklansky's algorithm does not exist on architecture 2201");
  vnpu::CumSum c;
  c.dst = dstTensor.pointer();
  c.last = config.outputLastRow ? lastRowTensor.pointer() : nullptr;
  c.src = srcTensor.pointer();
  c.dtype = vnpu::dtype_of<T>();
  c.outer = cumSumInfo.outter;
  c.inner = cumSumInfo.inner;
  c.last_axis = config.isLastAxis;
  vnpu::cum_sum(c);
}
template <typename T, const CumSumConfig& config = defaultCumSumConfig>
ASCENDC_INLINE void CumSum(LocalTensor<T>& dstTensor, LocalTensor<T>& lastRowTensor, const LocalTensor<T>& srcTensor,
                           LocalTensor<uint8_t>& /*sharedTmpBuffer*/, const CumSumInfo& cumSumInfo) {
  CumSum<T, config>(dstTensor, lastRowTensor, srcTensor, cumSumInfo);
}

}  // namespace AscendC
