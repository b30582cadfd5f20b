// Temporary local memory of reductions along an axis and of CumSum, in bytes (AscendC reference,
// GetReduceMaxMaxMinTmpSize and its siblings, GetCumSumMaxMinTmpSize; the numbers are asc-devkit's for architecture
// 2201).
#pragma once
#include <algorithm>
#include <cstdint>

#include "graph/tensor.h"
#include "graph/types.h"
#include "kernel_tiling/reduce_pattern.h"
#include "tiling/row_tiling.h"

namespace AscendC {

namespace detail {

// What is left after one step that folds the upper part of n onto the lower: the largest power of two below n.
inline uint32_t folded(uint32_t n) {
  uint32_t k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}
inline uint32_t type_bytes(ge::DataType type) { return type == ge::DT_FLOAT16 ? 2 : 4; }
inline uint32_t whole_blocks(uint32_t bytes) { return (bytes + 31) / 32 * 32; }

}  // namespace detail

#define VNPU_EXTREME_SIZE(NAME)                                                                           \
  inline void Get##NAME##MaxMinTmpSize(const TensorShape& srcShape, const TensorDataType dataType,        \
                                       ReducePattern pattern, bool /*isSrcInnerPad*/, bool isReuseSource, \
                                       uint32_t& maxValue, uint32_t& minValue) {                          \
    const uint32_t first = static_cast<uint32_t>(srcShape.GetDim(0)),                                     \
                   last = static_cast<uint32_t>(srcShape.GetDim(1));                                      \
    const uint32_t size = detail::type_bytes(dataType);                                                   \
    uint32_t bytes = 0;                                                                                   \
    if (isReuseSource)                                                                                    \
      bytes = 0;                                                                                          \
    else if (pattern == ReducePattern::RA)                                                                \
      bytes = detail::folded(first) * detail::whole_blocks(last * size);                                  \
    else if (last * size > 32) /* a block of every row, or a repeat */                                    \
      bytes = first * (last * size < 256 ? 32 : 256);                                                     \
    maxValue = minValue = bytes;                                                                          \
  }
VNPU_EXTREME_SIZE(ReduceMax)
VNPU_EXTREME_SIZE(ReduceMin)
#undef VNPU_EXTREME_SIZE

inline void GetReduceProdMaxMinTmpSize(const TensorShape& srcShape, const TensorDataType dataType,
                                       ReducePattern pattern, bool /*isSrcInnerPad*/, bool isReuseSource,
                                       uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t first = static_cast<uint32_t>(srcShape.GetDim(0)), last = static_cast<uint32_t>(srcShape.GetDim(1));
  const uint32_t size = detail::type_bytes(dataType);
  uint32_t bytes = 0;
  if (pattern == ReducePattern::RA)
    bytes = isReuseSource ? 0 : detail::folded(first) * detail::whole_blocks(last * size);
  else
    bytes = 256 + (isReuseSource ? 0 : (std::max(detail::folded(last + (first == 1)), 8u) + first * 8) * size);
  maxValue = minValue = bytes;
}

// Along the last axis rows are transposed, summed as rows, and transposed back, sixteen at a time; half is summed in
// float.
inline void GetCumSumMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isLastAxis,
                                   const bool /*isReuseSource*/, uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t outer = static_cast<uint32_t>(srcShape.GetDim(0)), inner = static_cast<uint32_t>(srcShape.GetDim(1));
  const bool half = typeSize == 2;
  if (!isLastAxis) {
    maxValue = minValue = half ? outer * inner * uint32_t(sizeof(float)) : 0;
    return;
  }
  const uint32_t per_row = inner * typeSize * 2 + (half ? inner * 2 : 0);
  minValue = 16 * per_row;
  maxValue = (outer + 15) / 16 * 16 * per_row;
}

}  // namespace AscendC
