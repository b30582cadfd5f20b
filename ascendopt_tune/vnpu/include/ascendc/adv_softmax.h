// SoftmaxGrad, SoftmaxGradFront, SimpleSoftMax, SoftmaxFlash and AdjustSoftMaxRes. None of them in NZ format.
#pragma once
#include "adv_norm.h"
#include "kernel_tiling/softmax_tiling_data.h"
#include "vnpu/adv_softmax.h"

namespace AscendC {
namespace detail {

// The rows, in pieces of the kernel's tiling where that is of this shape; else of as many rows as fit. `row_floats`: of
// temporary memory for a row.
template <typename T, typename Tiling>
ASCENDC_INLINE vnpu::SoftmaxRows softmax_rows(const LocalTensor<T>& src, vnpu::Scratch work, const Tiling& tiling,
                                              const SoftMaxShapeInfo& given, uint32_t row_floats) {
  const SoftMaxShapeInfo shape = softmax_shape(src, given);
  const bool same = tiling.srcM == shape.srcM && tiling.srcK == shape.srcK;
  vnpu::SoftmaxRows r;
  r.work = work;
  r.dtype = vnpu::dtype_of<T>();
  r.rows = shape.srcM;
  r.columns = shape.srcK;
  r.valid = shape.oriSrcK;
  r.row_floats = row_floats;
  r.piece = same ? tiling.splitM
                 : tiling::detail::row_tiling(shape.srcM, shape.srcK, 32 / sizeof(T),
                                              static_cast<uint32_t>(work.bytes / sizeof(float)), row_floats)
                       .splitM;
  return r;
}

template <typename T, typename Tiling>
ASCENDC_INLINE void softmax_grad(const LocalTensor<T>& dst, const LocalTensor<T>& grad, const LocalTensor<T>& src,
                                 vnpu::Scratch work, const Tiling& tiling, bool front, const SoftMaxShapeInfo& shape,
                                 const char* api) {
  static_assert(half_or_float<T>, "SoftmaxGrad and SoftmaxGradFront take half and float");
  vnpu::SoftmaxGrad s;
  s.dst = dst.pointer();
  s.grad = grad.pointer();
  s.src = src.pointer();
  s.front = front;
  const uint32_t columns = softmax_shape(src, shape).srcK;
  s.r = softmax_rows(src, work, tiling, shape, tiling::detail::grad_row_floats(columns, sizeof(T), front));
  vnpu::softmax_grad(s, api);
}

template <typename T, typename S, typename Tiling>
ASCENDC_INLINE void simple_softmax(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                                   const LocalTensor<T>& src, vnpu::Scratch work, const Tiling& tiling,
                                   const SoftMaxShapeInfo& shape) {
  static_assert(half_or_float<T>, "SimpleSoftMax takes half and float");
  vnpu::SimpleSoftmax s;
  s.dst = dst.pointer();
  s.sum = sum.pointer();
  s.max = max.pointer();
  s.src = src.pointer();
  s.statistics = vnpu::dtype_of<S>();
  const uint32_t columns = softmax_shape(src, shape).srcK;
  s.r = softmax_rows(src, work, tiling, shape, tiling::detail::first_flash_floats(columns, sizeof(T), false));
  // Half is kept as floats, with its statistics; float is worked on where it is, all rows at once (asc-devkit,
  // simple_softmax_common_impl.h).
  s.r.row_floats = sizeof(T) == sizeof(float) ? 0 : columns + (sizeof(S) == sizeof(T) ? 32 / sizeof(T) : 0);
  if (s.r.row_floats == 0) s.r.piece = s.r.rows;
  vnpu::simple_softmax(s);
}

// Without an update it is SoftMax.
template <typename T, typename S, typename Tiling>
ASCENDC_INLINE void softmax_flash_first(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                                        const LocalTensor<T>& src, const LocalTensor<T>& shrunk,
                                        const LocalTensor<S>& in_sum, const LocalTensor<S>& in_max, vnpu::Scratch work,
                                        const Tiling& tiling, bool update, const SoftMaxShapeInfo& shape) {
  static_assert(half_or_float<T>, "SoftmaxFlash takes half and float");
  if (!update) return softmax(dst, &sum, &max, src, work.begin, shape);
  vnpu::SoftmaxUpdate s;
  s.dst = dst.pointer();
  s.sum = sum.pointer();
  s.max = max.pointer();
  s.shrunk = shrunk.pointer();
  s.src = src.pointer();
  s.in_sum = in_sum.pointer();
  s.in_max = in_max.pointer();
  s.statistics = vnpu::dtype_of<S>();
  const uint32_t columns = softmax_shape(src, shape).srcK;
  s.r = softmax_rows(src, work, tiling, shape, tiling::detail::first_flash_floats(columns, sizeof(T), true));
  vnpu::softmax_update(s);
}

}  // namespace detail

// ---- SoftmaxGrad, SoftmaxGradFront ----

// `Tiling` is SoftMaxTiling.
// Limit of SoftmaxGrad, SoftmaxGradFront, SimpleSoftMax: not in NZ format.
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename Tiling>
ASCENDC_INLINE void SoftmaxGrad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                                const LocalTensor<T>& srcTensor, const Tiling& tiling, bool isFront = false,
                                const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(!isDataFormatNZ, "SoftmaxGrad in NZ format is not covered by the virtual NPU");
  detail::softmax_grad(dstTensor, gradTensor, srcTensor, detail::scratch(), tiling, isFront, softmaxShapeInfo,
                       "SoftmaxGrad");
}
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename Tiling>
ASCENDC_INLINE void SoftmaxGrad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                                const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                                const Tiling& tiling, bool isFront = false,
                                const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(!isDataFormatNZ, "SoftmaxGrad in NZ format is not covered by the virtual NPU");
  detail::softmax_grad(dstTensor, gradTensor, srcTensor, detail::scratch(sharedTmpBuffer), tiling, isFront,
                       softmaxShapeInfo, "SoftmaxGrad");
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false, typename Tiling>
ASCENDC_INLINE void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                                     const LocalTensor<T>& srcTensor, const Tiling& tiling,
                                     const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(!isDataFormatNZ, "SoftmaxGradFront in NZ format is not covered by the virtual NPU");
  detail::softmax_grad(dstTensor, gradTensor, srcTensor, detail::scratch(), tiling, true, softmaxShapeInfo,
                       "SoftmaxGradFront");
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false, typename Tiling>
ASCENDC_INLINE void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                                     const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                                     const Tiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(!isDataFormatNZ, "SoftmaxGradFront in NZ format is not covered by the virtual NPU");
  detail::softmax_grad(dstTensor, gradTensor, srcTensor, detail::scratch(sharedTmpBuffer), tiling, true,
                       softmaxShapeInfo, "SoftmaxGradFront");
}

// ---- SimpleSoftMax, SoftmaxFlash ----

// Statistics are of the type of the source, or float's with a source of half.
#define VNPU_SIMPLE_SOFTMAX(ELEMENT, STATISTICS, PARAMETERS, WORK)                                                     \
  template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,            \
            const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>                                        \
  ASCENDC_INLINE void SimpleSoftMax(const LocalTensor<ELEMENT>& dstTensor, const LocalTensor<STATISTICS>& inSumTensor, \
                                    const LocalTensor<STATISTICS>& inMaxTensor, const LocalTensor<ELEMENT>& srcTensor, \
                                    PARAMETERS const Tiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}) {  \
    static_assert(!isDataFormatNZ, "SimpleSoftMax in NZ format is not covered by the virtual NPU");                    \
    detail::simple_softmax(dstTensor, inSumTensor, inMaxTensor, srcTensor, WORK, tiling, softmaxShapeInfo);            \
  }
#define VNPU_SOFTMAX_FLASH(ELEMENT, STATISTICS, PARAMETERS, WORK)                                                   \
  template <typename T, bool isReuseSource = false, bool isBasicBlock = false, typename Tiling>                     \
  ASCENDC_INLINE void SoftmaxFlash(const LocalTensor<ELEMENT>& dstTensor, const LocalTensor<STATISTICS>& sumTensor, \
                                   const LocalTensor<STATISTICS>& maxTensor, const LocalTensor<ELEMENT>& srcTensor, \
                                   const LocalTensor<ELEMENT>& expMaxTensor,                                        \
                                   const LocalTensor<STATISTICS>& inSumTensor,                                      \
                                   const LocalTensor<STATISTICS>& inMaxTensor, PARAMETERS const Tiling& tiling,     \
                                   bool isUpdate = false, const SoftMaxShapeInfo& softmaxShapeInfo = {}) {          \
    detail::softmax_flash_first(dstTensor, sumTensor, maxTensor, srcTensor, expMaxTensor, inSumTensor, inMaxTensor, \
                                WORK, tiling, isUpdate, softmaxShapeInfo);                                          \
  }
#define VNPU_SHARED const LocalTensor<uint8_t>&sharedTmpBuffer,
VNPU_SIMPLE_SOFTMAX(T, T, VNPU_SHARED, detail::scratch(sharedTmpBuffer))
VNPU_SIMPLE_SOFTMAX(T, T, , detail::scratch())
VNPU_SIMPLE_SOFTMAX(half, float, VNPU_SHARED, detail::scratch(sharedTmpBuffer))
VNPU_SIMPLE_SOFTMAX(half, float, , detail::scratch())
VNPU_SOFTMAX_FLASH(T, T, VNPU_SHARED, detail::scratch(sharedTmpBuffer))
VNPU_SOFTMAX_FLASH(T, T, , detail::scratch())
VNPU_SOFTMAX_FLASH(half, float, VNPU_SHARED, detail::scratch(sharedTmpBuffer))
VNPU_SOFTMAX_FLASH(half, float, , detail::scratch())
#undef VNPU_SOFTMAX_FLASH
#undef VNPU_SIMPLE_SOFTMAX
#undef VNPU_SHARED

// ---- AdjustSoftMaxRes ----

// With stepSizeMode the maxima follow each other; else each begins a block.
template <typename T1, typename T2, bool isDataFormatNZ = false, uint8_t stepSizeMode = 0>
ASCENDC_INLINE bool AdjustSoftMaxRes(const LocalTensor<T1>& softMaxRes, const LocalTensor<T2>& maxTensor,
                                     const uint32_t from, const T1 to, const SoftMaxShapeInfo& softmaxShapeInfo) {
  static_assert(!isDataFormatNZ, "AdjustSoftMaxRes takes ND format alone: isDataFormatNZ");
  static_assert(detail::half_or_float<T1> && detail::half_or_float<T2>, "AdjustSoftMaxRes takes half and float");
  vnpu::AdjustSoftmax a;
  a.dst = softMaxRes.pointer();
  a.max = maxTensor.pointer();
  a.dtype = vnpu::dtype_of<T1>();
  a.statistics = vnpu::dtype_of<T2>();
  a.rows = softmaxShapeInfo.srcM;
  a.columns = softmaxShapeInfo.srcK;
  a.step = stepSizeMode ? 1 : 32 / sizeof(T2);
  a.from = from;
  a.to = static_cast<float>(to);
  return vnpu::adjust_softmax(a);
}

}  // namespace AscendC
