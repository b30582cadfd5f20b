// SoftmaxFlashV2, a step of an online softmax, and its tiling on the kernel's side.
#pragma once
#include "adv_compose.h"
#include "kernel_tiling/softmax_tiling_data.h"
#include "vnpu/adv_flash.h"

namespace AscendC {

using tiling::SoftMaxTiling;

ASCENDC_INLINE constexpr SoftMaxTiling SoftMaxFlashV2TilingFunc(
    const SoftMaxShapeInfo& shapeInfo, const uint32_t dataTypeSize1, const uint32_t dataTypeSize2,
    const uint32_t localWorkSpaceSize, const bool /*isUpdate*/ = false, const bool isBasicBlock = false,
    const bool isDataFormatNZ = false, const bool isFlashOutputBrc = false) {
  if (isDataFormatNZ) vnpu::misuse("SoftMaxFlashV2TilingFunc", "NZ format is not covered by the virtual NPU");
  return tiling::detail::flash_tiling(shapeInfo.srcM, shapeInfo.srcK, dataTypeSize1, dataTypeSize2,
                                      localWorkSpaceSize / 4, isBasicBlock, isFlashOutputBrc);
}

// Under its inner name, by which operators call it: a shape in two numbers, temporary memory in elements of 4 bytes.
ASCENDC_INLINE constexpr SoftMaxTiling SoftMaxFlashV2TilingFuncImpl(
    const uint32_t srcM, const uint32_t srcK, const uint32_t dataTypeSize1, const uint32_t dataTypeSize2,
    const uint32_t localWorkSpaceSize, const bool /*isUpdate*/ = false, const bool isBasicBlock = false,
    const bool isDataFormatNZ = false, const bool isFlashOutputBrc = false) {
  if (isDataFormatNZ) vnpu::misuse("SoftMaxFlashV2TilingFuncImpl", "NZ format is not covered by the virtual NPU");
  return tiling::detail::flash_tiling(srcM, srcK, dataTypeSize1, dataTypeSize2, localWorkSpaceSize, isBasicBlock,
                                      isFlashOutputBrc);
}

namespace detail {

// The temporary memory: a tensor of the kernel's, or the room behind its buffers.
struct FlashWork {
  void* begin = nullptr;
  uint32_t bytes = 0;
};
ASCENDC_INLINE FlashWork flash_work(const LocalTensor<uint8_t>& given) { return {given.pointer(), given.GetSize()}; }
ASCENDC_INLINE FlashWork flash_work() { return {vnpu::local_rest(), vnpu::local_rest_bytes()}; }

template <const SoftmaxConfig& config>
constexpr bool one_element_a_row = config.mode == SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC;
// With a constant shape the device finds out by itself.
template <const SoftmaxConfig& config>
constexpr bool constant_shape = config.oriSrcM != 0 && config.oriSrcK != 0;

// The kernel's tiling where it is that of the shape, or isn't looked at; otherwise the shape's.
template <typename T, typename S, bool basic, const SoftmaxConfig& config>
ASCENDC_INLINE SoftMaxTiling flash_tiling_of(const SoftMaxTiling& given, const SoftMaxShapeInfo& shape,
                                             uint32_t bytes) {
  if (given.srcM == shape.srcM && given.srcK == shape.srcK) return given;
  if constexpr (!config.isCheckTiling)
    vnpu::misuse("SoftmaxFlashV2", "the tiling is another shape's, and config.isCheckTiling is false");
  return SoftMaxFlashV2TilingFunc(shape, sizeof(T), sizeof(S), bytes, false, basic, false, one_element_a_row<config>);
}

ASCENDC_INLINE void check_basic_block(const SoftMaxShapeInfo& shape, uint32_t size) {
  if (shape.srcK % 64 != 0 || shape.srcK >= 2048 || shape.srcK * size < 256 || shape.srcM % 8 != 0)
    vnpu::misuse("SoftmaxFlashV2",
                 "isBasicBlock wants rows of whole 64 elements, at least 256 B and fewer than 2048 "
                 "elements, and a multiple of 8 of them");
}

template <bool isUpdate, bool isBasicBlock, const SoftmaxConfig& config, typename T, typename S>
ASCENDC_INLINE void softmax_flash(const LocalTensor<T>& dst, const LocalTensor<S>* row_max, const LocalTensor<S>& sum,
                                  const LocalTensor<S>& max, const LocalTensor<T>& src, const LocalTensor<T>& shrunk,
                                  const LocalTensor<S>& in_sum, const LocalTensor<S>& in_max, FlashWork work,
                                  const SoftMaxTiling& given, const SoftMaxShapeInfo& given_shape) {
  const SoftMaxShapeInfo shape = softmax_shape(src, given_shape);
  constexpr bool basic = isBasicBlock && !constant_shape<config>, wide = !one_element_a_row<config>;
  if constexpr (basic) check_basic_block(shape, sizeof(T));
  const SoftMaxTiling cut = flash_tiling_of<T, S, basic, config>(given, shape, work.bytes);
  if (cut.splitM == 0) vnpu::misuse("SoftmaxFlashV2", "the temporary memory has no room for a row");
  if (!wide && cut.splitM != shape.srcM && cut.splitM % (32 / sizeof(T)) != 0)
    vnpu::misuse("SoftmaxFlashV2", "pieces of tiling.splitM rows don't fill blocks of 32 B with an element for each");
  vnpu::SoftmaxFlash s;
  s.dst = dst.pointer();
  s.src = src.pointer();
  s.sum = sum.pointer();
  s.max = max.pointer();
  if (row_max != nullptr && isUpdate) s.row_max = row_max->pointer();
  if (isUpdate) {
    s.shrunk = shrunk.pointer();
    s.in_sum = in_sum.pointer();
    s.in_max = in_max.pointer();
  }
  s.work = work.begin;
  s.work_bytes = 4 * cut.splitM * tiling::detail::flash_row_floats(shape.srcK, sizeof(T), sizeof(S), basic);
  if (s.work_bytes > work.bytes) vnpu::misuse("SoftmaxFlashV2", "the temporary memory is smaller than the tiling's");
  s.dtype = vnpu::dtype_of<T>();
  s.statistics = vnpu::dtype_of<S>();
  s.rows = shape.srcM;
  s.columns = shape.srcK;
  s.valid = basic ? shape.srcK : constant_shape<config> ? config.oriSrcK : shape.oriSrcK;
  s.update = isUpdate;
  s.wide = wide;
  vnpu::softmax_flash(s);
}

}  // namespace detail

// Limit of SoftmaxFlashV2: not in NZ format.
#define VNPU_FLASH_TEMPLATE                                                                           \
  template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false, \
            bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>           \
  ASCENDC_INLINE void
#define VNPU_FLASH_ND static_assert(!isDataFormatNZ, "SoftmaxFlashV2 in NZ format is not covered by the virtual NPU")

// Two forms of each: with temporary memory of the kernel's, and without.
#define VNPU_FLASH(T1, T2)                                                                                            \
  VNPU_FLASH_TEMPLATE SoftmaxFlashV2(const LocalTensor<T1>& dstTensor, const LocalTensor<T2>& expSumTensor,           \
                                     const LocalTensor<T2>& maxTensor, const LocalTensor<T1>& srcTensor,              \
                                     const LocalTensor<T1>& expMaxTensor, const LocalTensor<T2>& inExpSumTensor,      \
                                     const LocalTensor<T2>& inMaxTensor, const LocalTensor<uint8_t>& sharedTmpBuffer, \
                                     const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}) {    \
    VNPU_FLASH_ND;                                                                                                    \
    const LocalTensor<T2>* none = nullptr;                                                                            \
    detail::softmax_flash<isUpdate, isBasicBlock, config>(                                                            \
        dstTensor, none, expSumTensor, maxTensor, srcTensor, expMaxTensor, inExpSumTensor, inMaxTensor,               \
        detail::flash_work(sharedTmpBuffer), tiling, softmaxShapeInfo);                                               \
  }                                                                                                                   \
  VNPU_FLASH_TEMPLATE SoftmaxFlashV2(const LocalTensor<T1>& dstTensor, const LocalTensor<T2>& expSumTensor,           \
                                     const LocalTensor<T2>& maxTensor, const LocalTensor<T1>& srcTensor,              \
                                     const LocalTensor<T1>& expMaxTensor, const LocalTensor<T2>& inExpSumTensor,      \
                                     const LocalTensor<T2>& inMaxTensor, const SoftMaxTiling& tiling,                 \
                                     const SoftMaxShapeInfo& softmaxShapeInfo = {}) {                                 \
    VNPU_FLASH_ND;                                                                                                    \
    const LocalTensor<T2>* none = nullptr;                                                                            \
    detail::softmax_flash<isUpdate, isBasicBlock, config>(dstTensor, none, expSumTensor, maxTensor, srcTensor,        \
                                                          expMaxTensor, inExpSumTensor, inMaxTensor,                  \
                                                          detail::flash_work(), tiling, softmaxShapeInfo);            \
  }
VNPU_FLASH(T, T)
VNPU_FLASH(half, float)
#undef VNPU_FLASH

#define VNPU_FLASH_NARROW                          \
  VNPU_FLASH_ND;                                   \
  static_assert(detail::one_element_a_row<config>, \
                "SoftmaxFlashV2 with outReduceMax takes SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC")
VNPU_FLASH_TEMPLATE SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<T>& outReduceMax,
                                   const LocalTensor<T>& outExpSum, const LocalTensor<T>& outMax,
                                   const LocalTensor<T>& srcTensor, const LocalTensor<T>& outExpMax,
                                   const LocalTensor<T>& inExpSum, const LocalTensor<T>& inMax,
                                   const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                                   const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  VNPU_FLASH_NARROW;
  detail::softmax_flash<isUpdate, isBasicBlock, config>(dstTensor, &outReduceMax, outExpSum, outMax, srcTensor,
                                                        outExpMax, inExpSum, inMax, detail::flash_work(sharedTmpBuffer),
                                                        tiling, softmaxShapeInfo);
}
VNPU_FLASH_TEMPLATE SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<T>& outReduceMax,
                                   const LocalTensor<T>& outExpSum, const LocalTensor<T>& outMax,
                                   const LocalTensor<T>& srcTensor, const LocalTensor<T>& outExpMax,
                                   const LocalTensor<T>& inExpSum, const LocalTensor<T>& inMax,
                                   const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  VNPU_FLASH_NARROW;
  detail::softmax_flash<isUpdate, isBasicBlock, config>(dstTensor, &outReduceMax, outExpSum, outMax, srcTensor,
                                                        outExpMax, inExpSum, inMax, detail::flash_work(), tiling,
                                                        softmaxShapeInfo);
}
#undef VNPU_FLASH_NARROW
#undef VNPU_FLASH_ND
#undef VNPU_FLASH_TEMPLATE

}  // namespace AscendC
