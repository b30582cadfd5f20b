// High-level APIs AscendDequant and AscendAntiQuant. Of the first the forms that count elements without DequantParams,
// which the documentation advises against, are not covered.
#pragma once
#include <type_traits>

#include "tensor.h"
#include "vnpu/adv_quant.h"

namespace AscendC {

struct DequantParams {
  uint32_t m, n, calCount;
};
enum class DeQuantMode { DEQUANT_WITH_SINGLE_ROW, DEQUANT_WITH_MULTI_ROW };

namespace detail {
template <typename D>
ASCENDC_INLINE vnpu::Dequant dequant_of(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src,
                                        const LocalTensor<uint8_t>* work, const DequantParams& p, DeQuantMode mode) {
  vnpu::Dequant d;
  d.dst = dst.pointer();
  d.src = src.pointer();
  if (work) {
    d.work = work->pointer();
    d.work_bytes = work->GetSize();
  }
  d.dtype = vnpu::dtype_of<D>();
  d.m = p.m;
  d.n = p.n;
  d.count = p.calCount;
  d.single_row = mode == DeQuantMode::DEQUANT_WITH_SINGLE_ROW;
  return d;
}
template <typename D, typename S>
ASCENDC_INLINE void dequant(vnpu::Dequant d, const LocalTensor<S>& scale) {
  constexpr bool wide = std::is_same_v<D, half>;  // bits of a float, as Fixpipe takes them
  static_assert(wide ? std::is_same_v<S, uint64_t> : std::is_same_v<S, float> || std::is_same_v<S, bfloat16_t>,
                "AscendDequant takes scales of uint64_t for half, of float or bfloat16_t for float and bfloat16_t");
  d.scale = scale.pointer();
  d.scale_dtype = vnpu::dtype_of<S>();
  vnpu::dequantize(d);
}
template <typename D, typename S>
ASCENDC_INLINE void dequant(vnpu::Dequant d, S scale) {
  static_assert(std::is_same_v<D, float> || std::is_same_v<D, bfloat16_t>,
                "AscendDequant with one scale for all makes float or bfloat16_t");
  d.one = static_cast<float>(scale);
  vnpu::dequantize(d);
}
}  // namespace detail

template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
ASCENDC_INLINE void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                                  const LocalTensor<scaleT>& deqScale, const LocalTensor<uint8_t>& sharedTmpBuffer,
                                  DequantParams params) {
  detail::dequant<dstT>(detail::dequant_of(dstTensor, srcTensor, &sharedTmpBuffer, params, mode), deqScale);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
ASCENDC_INLINE void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                                  const LocalTensor<scaleT>& deqScale, DequantParams params) {
  detail::dequant<dstT>(detail::dequant_of(dstTensor, srcTensor, nullptr, params, mode), deqScale);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
ASCENDC_INLINE void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                                  const scaleT deqScale, const LocalTensor<uint8_t>& sharedTmpBuffer,
                                  DequantParams params) {
  detail::dequant<dstT>(detail::dequant_of(dstTensor, srcTensor, &sharedTmpBuffer, params, mode), deqScale);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
ASCENDC_INLINE void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                                  const scaleT deqScale, DequantParams params) {
  detail::dequant<dstT>(detail::dequant_of(dstTensor, srcTensor, nullptr, params, mode), deqScale);
}

// How the scales of AscendAntiQuant lie; a height or width of 0 is what the tensor's ShapeInfo says.
struct AntiQuantShapeInfo {
  uint32_t offsetHeight{0}, offsetWidth{0}, scaleHeight{0}, scaleWidth{0};
};

namespace detail {
template <bool transposed, typename S, typename D>
ASCENDC_INLINE vnpu::AntiQuant antiquant_of(const LocalTensor<D>& dst, const LocalTensor<S>& src, uint32_t k,
                                            const LocalTensor<uint8_t>* work) {
  static_assert(std::is_same_v<S, int8_t> || std::is_same_v<S, int4b_t>, "AscendAntiQuant: src is int8_t or int4b_t");
  static_assert(std::is_same_v<D, half> || std::is_same_v<D, bfloat16_t>, "AscendAntiQuant: dst is half or bfloat16_t");
  vnpu::AntiQuant a;
  a.dst = dst.pointer();
  a.src = src.pointer();
  a.dtype = vnpu::dtype_of<D>();
  a.src_dtype = vnpu::dtype_of<S>();
  a.transposed = transposed;
  const uint32_t other = k == 0 ? 0 : src.GetSize() / k;
  a.rows = transposed ? other : k;
  a.columns = transposed ? k : other;
  if (work) {
    a.work = work->pointer();
    a.work_bytes = work->GetSize();
  }
  return a;
}
// With a scale for each channel: how many elements along k have one in common.
template <typename D>
ASCENDC_INLINE void antiquant(vnpu::AntiQuant a, const LocalTensor<D>* offset, const LocalTensor<D>& scale, uint32_t k,
                              const AntiQuantShapeInfo& info) {
  const uint32_t told = a.transposed ? info.scaleWidth : info.scaleHeight;
  const ShapeInfo own = scale.GetShapeInfo();
  uint32_t groups = told != 0 ? told : own.shapeDim == 2 ? own.shape[a.transposed ? 1 : 0] : 1;
  if (groups == 0) groups = 1;
  if (k % groups != 0) vnpu::misuse("AscendAntiQuant", "k is no multiple of the number of scales along it");
  a.share = k / groups;
  a.scale = scale.pointer();
  if (offset) a.offset = offset->pointer();
  vnpu::antiquantize(a);
}
template <typename D>
ASCENDC_INLINE void antiquant(vnpu::AntiQuant a, D offset, D scale) {
  a.one_offset = static_cast<float>(offset);
  a.one_scale = static_cast<float>(scale);
  vnpu::antiquantize(a);
}
}  // namespace detail

// On a cube core it does nothing, as in CANN's own code.
template <typename InputDataType, typename OutputDataType, bool isTranspose>
ASCENDC_INLINE void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                                    const LocalTensor<OutputDataType>& offset, const LocalTensor<OutputDataType>& scale,
                                    const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t k,
                                    const AntiQuantShapeInfo& shapeInfo = {}) {
  detail::antiquant(detail::antiquant_of<isTranspose>(dst, src, k, &sharedTmpBuffer), &offset, scale, k, shapeInfo);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
ASCENDC_INLINE void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                                    const LocalTensor<OutputDataType>& offset, const LocalTensor<OutputDataType>& scale,
                                    const uint32_t k, const AntiQuantShapeInfo& shapeInfo = {}) {
  detail::antiquant(detail::antiquant_of<isTranspose>(dst, src, k, nullptr), &offset, scale, k, shapeInfo);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
ASCENDC_INLINE void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                                    const LocalTensor<OutputDataType>& scale,
                                    const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t k,
                                    const AntiQuantShapeInfo& shapeInfo = {}) {
  const LocalTensor<OutputDataType>* none = nullptr;
  detail::antiquant(detail::antiquant_of<isTranspose>(dst, src, k, &sharedTmpBuffer), none, scale, k, shapeInfo);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
ASCENDC_INLINE void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                                    const OutputDataType offset, const OutputDataType scale,
                                    const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t k,
                                    const AntiQuantShapeInfo& = {}) {
  detail::antiquant(detail::antiquant_of<isTranspose>(dst, src, k, &sharedTmpBuffer), offset, scale);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
ASCENDC_INLINE void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                                    const OutputDataType offset, const OutputDataType scale, const uint32_t k,
                                    const AntiQuantShapeInfo& = {}) {
  detail::antiquant(detail::antiquant_of<isTranspose>(dst, src, k, nullptr), offset, scale);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
ASCENDC_INLINE void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                                    const OutputDataType scale, const LocalTensor<uint8_t>& sharedTmpBuffer,
                                    const uint32_t k, const AntiQuantShapeInfo& = {}) {
  detail::antiquant(detail::antiquant_of<isTranspose>(dst, src, k, &sharedTmpBuffer), OutputDataType(0), scale);
}

}  // namespace AscendC
