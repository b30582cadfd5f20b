// High-level APIs made of several instructions: Broadcast, Sum, Mean, SoftMax. Forms without a temporary buffer take
// the room behind the kernel's buffers; here only Broadcast does.
#pragma once
#include "tensor.h"
#include "vnpu/adv_compose.h"

namespace AscendC {

// ---- Broadcast (BroadCast is its older name) ----

namespace detail {
template <typename T, int32_t dim, int32_t axis>
ASCENDC_INLINE void broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
                              const uint32_t srcShape[dim], void* work, uint64_t work_bytes) {
  static_assert(dim == 1 || dim == 2, "Broadcast takes tensors of 1 or 2 dimensions");
  static_assert(axis == 0 || (axis == 1 && dim == 2), "axis is 0, or 1 with 2 dimensions");
  uint32_t rows = dim == 1 ? 1 : dstShape[0], columns = dstShape[dim - 1];
  bool copies = true;
  for (int32_t i = 0; i < dim; i++) {
    if (srcShape[i] == dstShape[i]) continue;
    copies = false;
    if (i != axis || srcShape[i] != 1)
      vnpu::misuse("Broadcast", "srcShape differs from dstShape elsewhere than in a 1 on the broadcast axis");
  }
  // One dimension: a single element to a row.
  vnpu::broadcast(dst.pointer(), src.pointer(), work, work_bytes, vnpu::dtype_of<T>(),
                  {rows, columns, dim == 1 ? 1 : axis, copies});
}
}  // namespace detail

template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
ASCENDC_INLINE void Broadcast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                              const uint32_t dstShape[dim], const uint32_t srcShape[dim]) {
  detail::broadcast<T, dim, axis>(dstLocal, srcLocal, dstShape, srcShape, vnpu::local_rest(), vnpu::local_rest_bytes());
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
ASCENDC_INLINE void Broadcast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                              const uint32_t dstShape[dim], const uint32_t srcShape[dim],
                              LocalTensor<uint8_t>& sharedTmpBuffer) {
  detail::broadcast<T, dim, axis>(dstLocal, srcLocal, dstShape, srcShape, sharedTmpBuffer.pointer(),
                                  sharedTmpBuffer.GetSize());
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
ASCENDC_INLINE void BroadCast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                              const uint32_t dstShape[dim], const uint32_t srcShape[dim]) {
  detail::broadcast<T, dim, axis>(dstLocal, srcLocal, dstShape, srcShape, vnpu::local_rest(), vnpu::local_rest_bytes());
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
ASCENDC_INLINE void BroadCast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                              const uint32_t dstShape[dim], const uint32_t srcShape[dim],
                              LocalTensor<uint8_t>& sharedTmpBuffer) {
  detail::broadcast<T, dim, axis>(dstLocal, srcLocal, dstShape, srcShape, sharedTmpBuffer.pointer(),
                                  sharedTmpBuffer.GetSize());
}

// ---- Sum and Mean over the last axis ----

struct SumParams {
  uint32_t outter = 1;
  uint32_t inner;  // n, rounded up to 32 bytes
  uint32_t n;
};
struct MeanParams {
  uint32_t outter = 1;
  uint32_t inner;
  uint32_t n;
};

template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
ASCENDC_INLINE void Sum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, const SumParams& p) {
  vnpu::row_sum(dstTensor.pointer(), srcTensor.pointer(), sharedTmpBuffer.pointer(), vnpu::dtype_of<T>(), p.outter,
                p.inner, p.n, false, false, "Sum");
}
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
ASCENDC_INLINE void Sum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const SumParams& p) {
  vnpu::row_sum(dstTensor.pointer(), srcTensor.pointer(), nullptr, vnpu::dtype_of<T>(), p.outter, p.inner, p.n, false,
                false, "Sum");
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
ASCENDC_INLINE void Mean(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                         const LocalTensor<uint8_t>& sharedTmpBuffer, const MeanParams& p) {
  vnpu::row_sum(dstTensor.pointer(), srcTensor.pointer(), sharedTmpBuffer.pointer(), vnpu::dtype_of<T>(), p.outter,
                p.inner, p.n, true, sizeof(accType) > sizeof(T), "Mean");
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
ASCENDC_INLINE void Mean(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const MeanParams& p) {
  vnpu::row_sum(dstTensor.pointer(), srcTensor.pointer(), nullptr, vnpu::dtype_of<T>(), p.outter, p.inner, p.n, true,
                sizeof(accType) > sizeof(T), "Mean");
}

// ---- SoftMax ----

enum class SoftmaxMode { SOFTMAX_NORMAL = 0, SOFTMAX_OUTPUT_WITHOUT_BRC = 1 };
struct SoftmaxConfig {
  constexpr SoftmaxConfig(const bool check, const uint32_t m = 0, const uint32_t k = 0,
                          const SoftmaxMode how = SoftmaxMode::SOFTMAX_NORMAL)
      : isCheckTiling(check), oriSrcM(m), oriSrcK(k), mode(how) {}
  bool isCheckTiling;
  uint32_t oriSrcM, oriSrcK;
  SoftmaxMode mode;
};
constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG = {true, 0, 0, SoftmaxMode::SOFTMAX_NORMAL};
// The source as rows (M) and columns (K), and how many of them are data.
struct SoftMaxShapeInfo {
  uint32_t srcM{0}, srcK{0}, oriSrcM{0}, oriSrcK{0};
};

namespace detail {
// Without a shape the source tensor's own (SetShapeInfo) counts.
template <typename T>
ASCENDC_INLINE SoftMaxShapeInfo softmax_shape(const LocalTensor<T>& src, SoftMaxShapeInfo shape) {
  if (shape.srcM != 0 && shape.srcK != 0) return shape;
  ShapeInfo own = src.GetShapeInfo();
  if (own.shapeDim < 1) vnpu::misuse("SoftMax", "neither softmaxShapeInfo nor the source tensor has a shape");
  SoftMaxShapeInfo s{1, own.shape[own.shapeDim - 1], 1, own.shape[own.shapeDim - 1]};
  for (uint32_t i = 0; i + 1 < own.shapeDim; i++) s.srcM *= own.shape[i];
  s.oriSrcM = s.srcM;
  if (own.originalShapeDim) s.oriSrcK = own.originalShape[own.originalShapeDim - 1];
  return s;
}
template <typename T, typename S>
ASCENDC_INLINE void softmax(const LocalTensor<T>& dst, const LocalTensor<S>* sum, const LocalTensor<S>* max,
                            const LocalTensor<T>& src, void* work, const SoftMaxShapeInfo& given, bool log10 = false) {
  SoftMaxShapeInfo shape = softmax_shape(src, given);
  vnpu::Softmax s;
  s.dst = dst.pointer();
  s.src = src.pointer();
  s.sum = sum ? sum->pointer() : nullptr;
  s.max = max ? max->pointer() : nullptr;
  s.work = work;
  s.dtype = vnpu::dtype_of<T>();
  s.statistics = vnpu::dtype_of<S>();
  s.rows = shape.srcM;
  s.columns = shape.srcK;
  s.valid = shape.oriSrcK;
  s.log10 = log10;
  vnpu::softmax(s, log10 ? "LogSoftMax" : "SoftMax");
}
}  // namespace detail

// `Tiling` is SoftMaxTiling, whose values only split the work on the device.
// Limit of SoftMax: not in NZ format.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
ASCENDC_INLINE void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& sumTensor,
                            const LocalTensor<T>& maxTensor, const LocalTensor<T>& srcTensor, const Tiling&,
                            const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(!isDataFormatNZ, "SoftMax in NZ format is not covered by the virtual NPU");
  detail::softmax(dstTensor, &sumTensor, &maxTensor, srcTensor, nullptr, softmaxShapeInfo);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
ASCENDC_INLINE void SoftMax(const LocalTensor<half>& dstTensor, const LocalTensor<float>& sumTensor,
                            const LocalTensor<float>& maxTensor, const LocalTensor<half>& srcTensor, const Tiling&,
                            const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(!isDataFormatNZ, "SoftMax in NZ format is not covered by the virtual NPU");
  detail::softmax(dstTensor, &sumTensor, &maxTensor, srcTensor, nullptr, softmaxShapeInfo);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
ASCENDC_INLINE void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& sumTensor,
                            const LocalTensor<T>& maxTensor, const LocalTensor<T>& srcTensor,
                            const LocalTensor<uint8_t>& sharedTmpBuffer, const Tiling&,
                            const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(!isDataFormatNZ, "SoftMax in NZ format is not covered by the virtual NPU");
  detail::softmax(dstTensor, &sumTensor, &maxTensor, srcTensor, sharedTmpBuffer.pointer(), softmaxShapeInfo);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
ASCENDC_INLINE void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const Tiling&,
                            const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  const LocalTensor<T>* none = nullptr;
  detail::softmax(dstTensor, none, none, srcTensor, nullptr, softmaxShapeInfo);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
ASCENDC_INLINE void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                            const LocalTensor<uint8_t>& sharedTmpBuffer, const Tiling&,
                            const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  const LocalTensor<T>* none = nullptr;
  detail::softmax(dstTensor, none, none, srcTensor, sharedTmpBuffer.pointer(), softmaxShapeInfo);
}

}  // namespace AscendC
