// Temporary local memory of high-level APIs that are made of several instructions, in bytes: Get...TmpSize and
// Get...TmpBufferFactorSize of the AscendC reference; the numbers are asc-devkit's for architecture 2201.
#pragma once
#include <algorithm>
#include <cstdint>

#include "graph/tensor.h"
#include "tiling/math_sizes.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/reduce_sizes.h"
#include "tiling/row_tiling.h"

namespace AscendC {

// ---- Activations ----

#define VNPU_NO_TEMPORARY(NAME)                                                                          \
  inline void Get##NAME##TmpSize(const TensorShape& /*srcShape*/, const uint32_t /*typeSize*/,           \
                                 const bool /*isReuseSource*/, uint32_t& maxValue, uint32_t& minValue) { \
    maxValue = minValue = 0;                                                                             \
  }
VNPU_NO_TEMPORARY(Swish)
VNPU_NO_TEMPORARY(Silu)
#undef VNPU_NO_TEMPORARY

// The only one with isReuseSource at the end.
inline void GetSwiGLUMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, uint32_t& maxValue,
                                   uint32_t& minValue, const bool isReuseSource) {
  detail::temporary_bytes({6, 0, 0}, srcShape, typeSize, isReuseSource, maxValue, minValue);
}
inline void GetSwiGLUTmpBufferFactorSize(const uint32_t typeSize, uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
  maxLiveNodeCount = typeSize == sizeof(float) ? 0 : 6;
  extraBuffer = 0;
}
inline void GetReGluMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool /*isReuseSource*/,
                                  uint32_t& maxValue, uint32_t& minValue) {
  minValue = maxValue = detail::kRepeatBytes;
  if (typeSize == sizeof(float)) return;
  minValue = 6 * detail::kRepeatBytes;
  maxValue = std::max(6 * static_cast<uint32_t>(srcShape.GetShapeSize()) * typeSize, minValue);
}
inline uint32_t GetGeluMinTmpSize(const TensorShape& /*srcShape*/, const uint32_t /*typeSize*/) {
  return 3 * detail::kRepeatBytes;
}
inline uint32_t GetGeluMaxTmpSize(const TensorShape& srcShape, const uint32_t typeSize) {
  const uint32_t floats = static_cast<uint32_t>(srcShape.GetShapeSize());
  return std::max(3 * floats * static_cast<uint32_t>(sizeof(float)), GetGeluMinTmpSize(srcShape, typeSize));
}
inline void GetGeluMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, uint32_t& maxValue,
                                 uint32_t& minValue) {
  maxValue = GetGeluMaxTmpSize(srcShape, typeSize);
  minValue = GetGeluMinTmpSize(srcShape, typeSize);
}

// ---- Sums, Broadcast ----

// A partial sum a repeat, rounded up to whole blocks.
inline void GetSumMaxMinTmpSize(const uint32_t n, const uint32_t typeSize, const bool /*isReuseSource*/,
                                uint32_t& maxSize, uint32_t& minSize) {
  if (n == 0 || typeSize == 0) return;
  const uint32_t lanes = detail::kRepeatBytes / typeSize;
  maxSize = minSize = detail::whole_blocks((n + lanes - 1) / lanes * typeSize);
}

inline void GetReduceSumMaxMinTmpSize(const TensorShape& srcShape, const TensorDataType /*dataType: float*/,
                                      ReducePattern pattern, bool /*isSrcInnerPad*/, bool isReuseSource,
                                      uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t first = static_cast<uint32_t>(srcShape.GetDim(0)), last = static_cast<uint32_t>(srcShape.GetDim(1));
  const uint32_t size = sizeof(float);
  uint32_t bytes = 0;
  if (!isReuseSource && pattern == ReducePattern::RA)
    bytes = detail::folded(first) * detail::whole_blocks(last * size);
  else if (!isReuseSource && last * size > detail::kRepeatBytes)
    bytes = first * detail::folded(last + (first == 1)) * size;
  maxValue = minValue = bytes;
}

// Columns are spread by Brcb, eight rows at a time, and copied where a row is no whole blocks; bytes are cast to
// halves.
inline void GetBroadCastMaxMinTmpSize(const platform_ascendc::PlatformAscendC& /*ascendcPlatform*/,
                                      const TensorShape& srcShape, const TensorShape& dstShape, uint32_t typeSize,
                                      const bool /*isReuseSource*/, uint32_t& maxValue, uint32_t& minValue) {
  if (typeSize == 0 || srcShape.GetDimNum() != dstShape.GetDimNum() || dstShape.GetDimNum() > 2) return;
  const auto from = static_cast<uint32_t>(srcShape.GetShapeSize()), to = static_cast<uint32_t>(dstShape.GetShapeSize());
  const bool bytes = typeSize == 1;
  const uint32_t cast = bytes ? ((from + 15) / 16 + (to + 15) / 16) * 32 : 0;
  if (from == to || from == 1) {
    maxValue = minValue = bytes ? cast + 32 : 0;
    return;
  }
  if (srcShape.GetDim(1) != 1) {
    maxValue = minValue = cast + 32;
    return;
  }
  const auto rows = static_cast<uint32_t>(dstShape.GetDim(0)), columns = static_cast<uint32_t>(dstShape.GetDim(1));
  const uint32_t size = bytes ? 2 : typeSize, lanes = 32 / size;  // a block has so many
  const uint32_t row = (columns % lanes == 0) ? 0 : detail::whole_blocks(columns * size);
  minValue = lanes * (32 + row) + cast;
  maxValue = (rows + 7) / 8 * 8 * 32 + rows * row + cast;
}

// ---- Select with a mask of bytes ----

namespace detail {
inline uint32_t select_bytes(const TensorShape& src0, const TensorShape& src1, const TensorShape& mask,
                             uint32_t mask_size, bool reuse_mask, uint32_t most_elements) {
  const bool scalar = src0.GetDimNum() == 0 || src0.GetShapeSize() == 1;
  const TensorShape& source = scalar ? src1 : src0;
  const auto all = static_cast<uint32_t>(source.GetShapeSize());
  const auto row = [](const TensorShape& s) { return s.GetDim(s.GetDimNum() - 1); };
  const uint32_t halves = (std::min(all, most_elements) + 31) / 32 * 32 * 2;
  uint32_t bytes = std::max(1024u, halves + 512);
  if (row(mask) != row(source) && !reuse_mask && row(mask) > 1) bytes += whole_blocks(all * mask_size);
  return bytes;
}
}  // namespace detail

inline uint32_t GetSelectWithBytesMaskMaxTmpSize(const TensorShape& src0Shape, const TensorShape& src1Shape,
                                                 const uint32_t /*srcTypeSize*/, const TensorShape& maskShape,
                                                 const uint32_t maskTypeSize, const bool isReuseMask) {
  return detail::select_bytes(src0Shape, src1Shape, maskShape, maskTypeSize, isReuseMask, UINT32_MAX);
}
inline uint32_t GetSelectWithBytesMaskMinTmpSize(const TensorShape& src0Shape, const TensorShape& src1Shape,
                                                 const uint32_t /*srcTypeSize*/, const TensorShape& maskShape,
                                                 const uint32_t maskTypeSize, const bool isReuseMask) {
  return detail::select_bytes(src0Shape, src1Shape, maskShape, maskTypeSize, isReuseMask, 4096);
}
inline void GetSelectWithBytesMaskMaxMinTmpSize(const TensorShape& src0Shape, const TensorShape& src1Shape,
                                                const uint32_t srcTypeSize, const TensorShape& maskShape,
                                                const uint32_t maskTypeSize, const bool isReuseMask, uint32_t& maxValue,
                                                uint32_t& minValue) {
  maxValue = GetSelectWithBytesMaskMaxTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, isReuseMask);
  minValue = GetSelectWithBytesMaskMinTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, isReuseMask);
}
// The older names.
inline uint32_t GetSelectMaxTmpSize(const TensorShape& src0Shape, const TensorShape& src1Shape,
                                    const uint32_t srcTypeSize, const TensorShape& maskShape,
                                    const uint32_t maskTypeSize, const bool isReuseMask) {
  return GetSelectWithBytesMaskMaxTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, isReuseMask);
}
inline uint32_t GetSelectMinTmpSize(const TensorShape& src0Shape, const TensorShape& src1Shape,
                                    const uint32_t srcTypeSize, const TensorShape& maskShape,
                                    const uint32_t maskTypeSize, const bool isReuseMask) {
  return GetSelectWithBytesMaskMinTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, isReuseMask);
}

// ---- Sort, ArithProgression ----

inline uint32_t GetConcatTmpSize(const platform_ascendc::PlatformAscendC& /*ascendcPlatform*/,
                                 const uint32_t /*elemCount*/, const uint32_t /*dataTypeSize*/) {
  return 0;
}
// A pair of value and index is 8 bytes, whatever the value's size.
inline uint32_t GetSortTmpSize(const platform_ascendc::PlatformAscendC& /*ascendcPlatform*/, const uint32_t elemCount,
                               const uint32_t dataTypeSize) {
  return elemCount * (dataTypeSize == sizeof(float) ? 2 : 4) * dataTypeSize;
}
inline void GetArithProgressionMaxMinTmpSize(uint32_t& maxValue, uint32_t& minValue) { maxValue = minValue = 0; }

// ---- Power ----

namespace detail {
// Vectors of the input's size: of two tensors, or of a tensor and a scalar.
inline uint32_t power_vectors(bool tensors, bool integers, uint32_t type_size) {
  if (integers) return tensors ? 6 : 7;
  if (type_size == sizeof(float)) return tensors ? 4 : 5;
  return 14;
}
}  // namespace detail

inline void GetPowerMaxMinTmpSize(const TensorShape& srcShape1, const TensorShape& srcShape2, const bool typeIsInt,
                                  const uint32_t typeSize, const bool /*isReuseSource*/, uint32_t& maxValue,
                                  uint32_t& minValue) {
  const auto tensor = [](const TensorShape& s) { return s.GetDimNum() != 1 || s.GetDim(0) != 1; };
  const bool both = tensor(srcShape1) && tensor(srcShape2), half = typeSize != sizeof(float) && !typeIsInt;
  const uint32_t vectors = detail::power_vectors(both, typeIsInt, typeSize);
  const auto size = static_cast<uint32_t>((tensor(srcShape1) ? srcShape1 : srcShape2).GetShapeSize());
  const uint32_t extra = typeIsInt ? 0 : detail::kRepeatBytes;
  const uint32_t least = typeSize == sizeof(float) ? detail::kRepeatBytes : detail::kRepeatBytes / 2;
  minValue = vectors * detail::kRepeatBytes / (half ? 2 : 1) + extra;
  maxValue = vectors * std::max(size * typeSize, least) + extra;
}
inline void GetPowerTmpBufferFactorSize(const bool baseIsTensor, const bool expIsTensor, const bool typeIsInt,
                                        const uint32_t typeSize, uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
  maxLiveNodeCount = detail::power_vectors(baseIsTensor && expIsTensor, typeIsInt, typeSize);
  extraBuffer = typeIsInt ? 0 : detail::kRepeatBytes;
}

}  // namespace AscendC
