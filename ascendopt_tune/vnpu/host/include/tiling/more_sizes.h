// Temporary local memory of ReduceMean, ReduceAny, ReduceAll, ReduceXorSum, Arange, AscendQuant and DropOut, in bytes
// (AscendC reference, Get...MaxMinTmpSize; the numbers are asc-devkit's for architecture 2201).
#pragma once
#include <algorithm>
#include <cstdint>

#include "graph/tensor.h"
#include "graph/types.h"
#include "tiling/composed_sizes.h"
#include "tiling/reduce_sizes.h"

namespace AscendC {

inline void GetReduceMeanMaxMinTmpSize(const TensorShape& srcShape, const TensorDataType dataType,
                                       ReducePattern pattern, bool isSrcInnerPad, bool isReuseSource,
                                       uint32_t& maxValue, uint32_t& minValue) {
  GetReduceSumMaxMinTmpSize(srcShape, dataType, pattern, isSrcInnerPad, isReuseSource, maxValue, minValue);
}

// Of floats as ReduceMax; of bytes a row as half and a block of every row, or half of the rows.
#define VNPU_TRUTH_SIZE(NAME)                                                                                          \
  inline void Get##NAME##MaxMinTmpSize(const TensorShape& srcShape, const TensorDataType dataType,                     \
                                       ReducePattern pattern, bool isSrcInnerPad, bool isReuseSource,                  \
                                       uint32_t& maxValue, uint32_t& minValue) {                                       \
    if (dataType != ge::DT_UINT8)                                                                                      \
      return GetReduceMaxMaxMinTmpSize(srcShape, dataType, pattern, isSrcInnerPad, isReuseSource, maxValue, minValue); \
    const auto first = static_cast<uint32_t>(srcShape.GetDim(0)), last = static_cast<uint32_t>(srcShape.GetDim(1));    \
    const uint32_t row = detail::whole_blocks(last);                                                                   \
    const uint32_t folded = isReuseSource ? 0 : detail::folded(first) * row;                                           \
    maxValue = minValue = pattern == ReducePattern::AR ? row * 2 + first * 32 : folded;                                \
  }
VNPU_TRUTH_SIZE(ReduceAny)
VNPU_TRUTH_SIZE(ReduceAll)
#undef VNPU_TRUTH_SIZE

inline void GetReduceXorSumMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                                         uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t bytes = static_cast<uint32_t>(srcShape.GetShapeSize()) * typeSize;
  maxValue = minValue = (isReuseSource ? 2 : 3) * std::max(bytes, detail::kRepeatBytes);
}

inline void GetArangeMaxMinTmpSize(uint32_t& maxValue, uint32_t& minValue) { maxValue = minValue = 0; }

inline uint32_t GetDropOutMinTmpSize(const TensorShape&, const uint32_t, const bool) {
  return 2 * detail::kRepeatBytes;
}
inline uint32_t GetDropOutMaxTmpSize(const TensorShape& srcShape, const uint32_t, const bool) {
  const auto all = static_cast<uint32_t>(2 * sizeof(float) * srcShape.GetShapeSize());
  return std::max(all, 2 * detail::kRepeatBytes);
}
inline void GetDropOutMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                                    uint32_t& maxValue, uint32_t& minValue) {
  maxValue = GetDropOutMaxTmpSize(srcShape, typeSize, isReuseSource);
  minValue = GetDropOutMinTmpSize(srcShape, typeSize, isReuseSource);
}

inline void GetAscendQuantTmpBufferFactorSize(uint32_t& maxLiveNodeCount, uint32_t& extraBuf) {
  maxLiveNodeCount = 2;
  extraBuf = 0;
}

}  // namespace AscendC
