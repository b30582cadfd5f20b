// LayerNormGrad, LayerNormGradBeta, BatchNorm, DeepNorm and GroupNorm: as adv_norm.h.
#pragma once
#include "adv_norm.h"

namespace AscendC {

using tiling::BatchNormTiling;
using tiling::DeepNormTiling;
using tiling::GroupNormTiling;
using tiling::LayerNormGradBetaTiling;
using tiling::LayerNormGradTiling;

struct LayerNormGradShapeInfo {
  DataFormat dataFormat = DataFormat::ND;
};

namespace detail {

// Elements of the largest piece there is: all of one, or the rest alone.
template <typename Tiling>
ASCENDC_INLINE uint32_t largest_piece(const Tiling& t) {
  return t.loopNum ? t.oneCalSize : t.tailSize;
}

template <typename T, bool reuse, typename Tiling>
ASCENDC_INLINE void layer_norm_grad(const LocalTensor<T>& dst, const LocalTensor<T>& for_gamma,
                                    const LocalTensor<T>& dy, const LocalTensor<T>& src, const LocalTensor<T>& variance,
                                    const LocalTensor<T>& mean, const LocalTensor<T>& gamma, vnpu::Scratch work,
                                    T epsilon, const Tiling& tiling, const LayerNormGradShapeInfo& shape) {
  static_assert(half_or_float<T>, "LayerNormGrad takes half and float");
  if (shape.dataFormat != DataFormat::ND) vnpu::misuse("LayerNormGrad", "shapeInfo.dataFormat has to be ND");
  vnpu::LayerNormGrad n;
  n.dst = dst.pointer();
  n.for_gamma = for_gamma.pointer();
  n.dy = dy.pointer();
  n.src = src.pointer();
  n.variance = variance.pointer();
  n.mean = mean.pointer();
  n.gamma = gamma.pointer();
  n.work = work;
  const uint32_t last = sizeof(T) == 2 ? tiling.tmpTensor2Pos : tiling.x3TensorPos;
  n.pieces = {(tiling.stackBufferSize + 3) / 4, last + largest_piece(tiling), tiling.oneCalSize};
  n.dtype = vnpu::dtype_of<T>();
  n.rows = tiling.bLength * tiling.sLength;
  n.columns = tiling.hLength;
  n.epsilon = static_cast<float>(epsilon);
  n.reciprocal = __builtin_bit_cast(float, tiling.lastDimValueBack);
  n.twice_reciprocal = __builtin_bit_cast(float, tiling.lastDimValueBackMulTwo);
  n.reuse = reuse;
  vnpu::layer_norm_grad(n);
}

template <typename T, bool reuse, typename Tiling>
ASCENDC_INLINE void layer_norm_grad_beta(const LocalTensor<T>& gamma, const LocalTensor<T>& beta,
                                         const LocalTensor<T>& for_gamma, const LocalTensor<T>& dy, vnpu::Scratch work,
                                         const Tiling& tiling) {
  static_assert(half_or_float<T>, "LayerNormGradBeta takes half and float");
  vnpu::LayerNormGradBeta n;
  n.gamma = gamma.pointer();
  n.beta = beta.pointer();
  n.for_gamma = for_gamma.pointer();
  n.dy = dy.pointer();
  n.work = work;
  n.pieces = {tiling.stackBufferSize, reuse ? 0 : tiling.resForGammaTmpTensorPos + tiling.oneCalSize,
              tiling.oneCalSize};
  n.dtype = vnpu::dtype_of<T>();
  n.rows = tiling.bsLength;
  n.columns = tiling.hLength;
  n.valid = tiling.originalHLength;
  n.reuse = reuse;
  vnpu::layer_norm_grad_beta(n);
}

template <typename T, bool basic_block, typename Tiling>
ASCENDC_INLINE void batch_norm(const LocalTensor<T>& dst, const LocalTensor<T>& mean, const LocalTensor<T>& variance,
                               const LocalTensor<T>& src, const LocalTensor<T>& gamma, const LocalTensor<T>& beta,
                               vnpu::Scratch work, T epsilon, const Tiling& tiling) {
  static_assert(half_or_float<T>, "BatchNorm takes half and float");
  vnpu::BatchNorm n;
  n.dst = dst.pointer();
  n.mean = mean.pointer();
  n.variance = variance.pointer();
  n.src = src.pointer();
  n.gamma = gamma.pointer();
  n.beta = beta.pointer();
  n.work = work;
  n.pieces = three_pieces(tiling, false);
  n.dtype = vnpu::dtype_of<T>();
  n.rows = tiling.originalBLength;
  n.columns = tiling.meanVarSize;
  n.reciprocal = tiling.firstDimValueBack;
  n.epsilon = static_cast<float>(epsilon);
  n.basic_block = basic_block;
  vnpu::batch_norm(n);
}

template <typename T, bool reuse, bool basic_block, typename Tiling>
ASCENDC_INLINE void deep_norm(const LocalTensor<T>& dst, const LocalTensor<T>& mean, const LocalTensor<T>& rstd,
                              const LocalTensor<T>& src, const LocalTensor<T>& gx, const LocalTensor<T>& beta,
                              const LocalTensor<T>& gamma, vnpu::Scratch work, T alpha, T epsilon,
                              const Tiling& tiling) {
  vnpu::DeepNorm d;
  d.n = layer_norm(dst, mean, rstd, src, gamma, beta, work, epsilon, tiling, reuse);
  d.gx = gx.pointer();
  d.valid = tiling.originalHLength;
  d.alpha = static_cast<float>(alpha);
  d.basic_block = basic_block;
  vnpu::deep_norm(d);
}

template <typename T, bool reuse, typename Tiling>
ASCENDC_INLINE void group_norm(const LocalTensor<T>& dst, const LocalTensor<T>& mean, const LocalTensor<T>& variance,
                               const LocalTensor<T>& src, const LocalTensor<T>& gamma, const LocalTensor<T>& beta,
                               vnpu::Scratch work, T epsilon, const Tiling& tiling) {
  static_assert(half_or_float<T>, "GroupNorm takes half and float");
  vnpu::GroupNorm g;
  g.dst = dst.pointer();
  g.mean = mean.pointer();
  g.variance = variance.pointer();
  g.src = src.pointer();
  g.gamma = gamma.pointer();
  g.beta = beta.pointer();
  g.work = work;
  g.pieces = three_pieces(tiling, reuse);
  g.dtype = vnpu::dtype_of<T>();
  g.n = tiling.n;
  g.channels = tiling.c;
  g.groups = tiling.g;
  g.hw = tiling.hw;
  g.stride = tiling.hwAlignSize;
  g.reciprocal = tiling.factor;
  g.epsilon = static_cast<float>(epsilon);
  g.reuse = reuse;
  g.small = tiling.smallShape;
  vnpu::group_norm(g);
}

}  // namespace detail

// ---- LayerNormGrad and LayerNormGradBeta ----

// `Tiling` is LayerNormGradTiling.
template <typename T, bool isReuseSource = false, typename Tiling>
ASCENDC_INLINE void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                                  const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                                  const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                                  const LocalTensor<T>& inputGamma, const LocalTensor<uint8_t>& sharedTmpBuffer,
                                  T epsilon, const Tiling& tiling, const LayerNormGradShapeInfo& shapeInfo = {}) {
  detail::layer_norm_grad<T, isReuseSource>(outputPdX, resForGamma, inputDy, inputX, inputVariance, inputMean,
                                            inputGamma, detail::scratch(sharedTmpBuffer), epsilon, tiling, shapeInfo);
}
template <typename T, bool isReuseSource = false, typename Tiling>
ASCENDC_INLINE void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                                  const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                                  const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                                  const LocalTensor<T>& inputGamma, T epsilon, const Tiling& tiling,
                                  const LayerNormGradShapeInfo& shapeInfo = {}) {
  detail::layer_norm_grad<T, isReuseSource>(outputPdX, resForGamma, inputDy, inputX, inputVariance, inputMean,
                                            inputGamma, detail::scratch(), epsilon, tiling, shapeInfo);
}

// `Tiling` is LayerNormGradBetaTiling.
template <typename T, bool isReuseSource = false, typename Tiling>
ASCENDC_INLINE void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma, const LocalTensor<T>& outputPdBeta,
                                      const LocalTensor<T>& resForGamma, const LocalTensor<T>& inputDy,
                                      const LocalTensor<uint8_t>& sharedTmpBuffer, const Tiling& tiling) {
  detail::layer_norm_grad_beta<T, isReuseSource>(outputPdGamma, outputPdBeta, resForGamma, inputDy,
                                                 detail::scratch(sharedTmpBuffer), tiling);
}
template <typename T, bool isReuseSource = false, typename Tiling>
ASCENDC_INLINE void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma, const LocalTensor<T>& outputPdBeta,
                                      const LocalTensor<T>& resForGamma, const LocalTensor<T>& inputDy,
                                      const Tiling& tiling) {
  detail::layer_norm_grad_beta<T, isReuseSource>(outputPdGamma, outputPdBeta, resForGamma, inputDy, detail::scratch(),
                                                 tiling);
}

// ---- BatchNorm, DeepNorm, GroupNorm ----

// `Tiling` is BatchNormTiling.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, typename Tiling>
ASCENDC_INLINE void BatchNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                              const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                              const LocalTensor<T>& gamm, const LocalTensor<T>& beta,
                              const LocalTensor<uint8_t>& sharedTmpBuffer, const T epsilon, const Tiling& tiling) {
  detail::batch_norm<T, isBasicBlock>(output, outputMean, outputVariance, inputX, gamm, beta,
                                      detail::scratch(sharedTmpBuffer), epsilon, tiling);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, typename Tiling>
ASCENDC_INLINE void BatchNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                              const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                              const LocalTensor<T>& gamm, const LocalTensor<T>& beta, const T epsilon,
                              const Tiling& tiling) {
  detail::batch_norm<T, isBasicBlock>(output, outputMean, outputVariance, inputX, gamm, beta, detail::scratch(),
                                      epsilon, tiling);
}

// `Tiling` is DeepNormTiling. rstdLocal gets the variance, as in the page's example.
template <typename T, bool isReuseSrc = false, bool isBasicBlock = false, typename Tiling>
ASCENDC_INLINE void DeepNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& meanLocal,
                             const LocalTensor<T>& rstdLocal, const LocalTensor<T>& srcLocal,
                             const LocalTensor<T>& gxLocal, const LocalTensor<T>& betaLocal,
                             const LocalTensor<T>& gammaLocal, const LocalTensor<uint8_t>& sharedTmpBuffer,
                             const T alpha, const T epsilon, const Tiling& tiling) {
  detail::deep_norm<T, isReuseSrc, isBasicBlock>(dstLocal, meanLocal, rstdLocal, srcLocal, gxLocal, betaLocal,
                                                 gammaLocal, detail::scratch(sharedTmpBuffer), alpha, epsilon, tiling);
}
template <typename T, bool isReuseSrc = false, bool isBasicBlock = false, typename Tiling>
ASCENDC_INLINE void DeepNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& meanLocal,
                             const LocalTensor<T>& rstdLocal, const LocalTensor<T>& srcLocal,
                             const LocalTensor<T>& gxLocal, const LocalTensor<T>& betaLocal,
                             const LocalTensor<T>& gammaLocal, const T alpha, const T epsilon, const Tiling& tiling) {
  detail::deep_norm<T, isReuseSrc, isBasicBlock>(dstLocal, meanLocal, rstdLocal, srcLocal, gxLocal, betaLocal,
                                                 gammaLocal, detail::scratch(), alpha, epsilon, tiling);
}

// `Tiling` is GroupNormTiling.
template <typename T, bool isReuseSource = false, typename Tiling>
ASCENDC_INLINE void GroupNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                              const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                              const LocalTensor<T>& gamma, const LocalTensor<T>& beta,
                              const LocalTensor<uint8_t>& sharedTmpBuffer, const T epsilon, const Tiling& tiling) {
  detail::group_norm<T, isReuseSource>(output, outputMean, outputVariance, inputX, gamma, beta,
                                       detail::scratch(sharedTmpBuffer), epsilon, tiling);
}
template <typename T, bool isReuseSource = false, typename Tiling>
ASCENDC_INLINE void GroupNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                              const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                              const LocalTensor<T>& gamma, const LocalTensor<T>& beta, const T epsilon,
                              const Tiling& tiling) {
  detail::group_norm<T, isReuseSource>(output, outputMean, outputVariance, inputX, gamma, beta, detail::scratch(),
                                       epsilon, tiling);
}

}  // namespace AscendC
