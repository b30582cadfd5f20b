// How much temporary local memory a high-level API asks for, in bytes (AscendC reference, Get...MaxMinTmpSize).
#pragma once
#include <algorithm>
#include <cstdint>

#include "graph/tensor.h"

namespace AscendC {

inline void GetSigmoidMaxMinTmpSize(const ge::Shape& srcShape, const uint32_t typeSize, bool /*isReuseSource*/,
                                    uint32_t& maxValue, uint32_t& minValue) {
  minValue = 256;  // one repeat
  maxValue = std::max(static_cast<uint32_t>(srcShape.GetShapeSize()) * typeSize, minValue);
}

// Mean keeps one partial sum per repeat; halves that are accumulated as floats need the converted source besides.
inline void GetMeanMaxMinTmpSize(const uint32_t n, const uint32_t srcTypeSize, const uint32_t accTypeSize,
                                 const bool /*isReuseSource*/, uint32_t& maxSize, uint32_t& minSize) {
  auto up = [](uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; };
  if (srcTypeSize == 0) return;
  const uint32_t lanes = 256 / std::max(srcTypeSize, accTypeSize);
  maxSize = up(up(n, lanes), 32) * 32;
  if (accTypeSize > srcTypeSize) maxSize += up(n * srcTypeSize, 32) * 32 / srcTypeSize * accTypeSize;
  minSize = maxSize;
}

// Floats of the source (all of it, or a row), of the scales and of a repeat (asc-devkit's numbers).
inline void GetAscendDequantMaxMinTmpSize(const ge::Shape& srcShape, const uint32_t /*typeSize*/, uint32_t& maxValue,
                                          uint32_t& minValue) {
  const auto inner = static_cast<uint32_t>(srcShape.GetDim(srcShape.GetDimNum() - 1));
  const auto all = static_cast<uint32_t>(srcShape.GetShapeSize());
  minValue = (64 + inner + inner + 8) * static_cast<uint32_t>(sizeof(float));
  maxValue = minValue + (all - inner) * static_cast<uint32_t>(sizeof(float));
}

// Of rows with one scale for all of it, or one for each column; none for half (asc-devkit's numbers).
inline void GetAscendAntiQuantMaxMinTmpSize(const ge::Shape& srcShape, const ge::Shape& scaleShape, bool isTranspose,
                                            ge::DataType /*inputDataType*/, ge::DataType outputDataType,
                                            uint32_t& maxValue, uint32_t& minValue) {
  maxValue = minValue = 0;
  if (outputDataType == ge::DT_FLOAT16) return;
  const auto scales = static_cast<uint32_t>(scaleShape.GetShapeSize());
  if (scales == 1) {
    maxValue = static_cast<uint32_t>(srcShape.GetShapeSize()) * 4;
    minValue = 1024;
    return;
  }
  const auto rows = static_cast<uint32_t>(srcShape.GetDim(0));
  maxValue = minValue = isTranspose ? 80 * scales * 4 : (2 * scales + 64 * rows) * 4;
}
// Two bytes an element, and at least two repeats (asc-devkit's numbers).
inline void GetAscendQuantMaxMinTmpSize(const ge::Shape& srcShape, const uint32_t /*typeSize*/, uint32_t& maxValue,
                                        uint32_t& minValue) {
  minValue = 512;
  maxValue = std::max((static_cast<uint32_t>(srcShape.GetShapeSize()) * 2 + 31) / 32 * 32, minValue);
}

}  // namespace AscendC
