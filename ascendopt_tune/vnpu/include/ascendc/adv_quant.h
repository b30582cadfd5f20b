// High-level API AscendDequant. The forms that count elements without DequantParams, which the documentation advises
// against, are not covered.
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

}  // namespace AscendC
