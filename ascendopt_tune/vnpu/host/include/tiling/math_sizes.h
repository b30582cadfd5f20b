// Temporary local memory of the high-level mathematical functions, in bytes: Get...MaxMinTmpSize and
// Get...TmpBufferFactorSize of the AscendC reference. Tiling programs divide the Unified Buffer by these numbers, so
// they have to be CANN's: how many vectors of the input's size each function needs on architecture 2201 (asc-devkit).
#pragma once
#include <algorithm>
#include <cstdint>

#include "graph/tensor.h"

namespace AscendC {
namespace detail {

constexpr uint32_t kRepeatBytes = 256;

// Vectors of the input's size, for half and for float, and for float when the source may be overwritten.
struct TemporaryVectors {
  uint32_t of_half, of_float, of_float_reused;
  constexpr uint32_t operator()(uint32_t type_size, bool reused) const {
    return type_size != sizeof(float) ? of_half : reused ? of_float_reused : of_float;
  }
};

// At most one vector for the whole input each, at least one repeat.
inline void temporary_bytes(TemporaryVectors vectors, const ge::Shape& shape, uint32_t type_size, bool reused,
                            uint32_t& max, uint32_t& min) {
  const uint32_t bytes = static_cast<uint32_t>(shape.GetShapeSize()) * type_size, n = vectors(type_size, reused);
  max = n * std::max(bytes, kRepeatBytes);
  min = n * kRepeatBytes;
}

}  // namespace detail

#define VNPU_TEMPORARY_SIZES(NAME, HALF, FLOAT, REUSED)                                                              \
  inline void Get##NAME##MaxMinTmpSize(const ge::Shape& srcShape, const uint32_t typeSize, const bool isReuseSource, \
                                       uint32_t& maxValue, uint32_t& minValue) {                                     \
    detail::temporary_bytes({HALF, FLOAT, REUSED}, srcShape, typeSize, isReuseSource, maxValue, minValue);           \
  }                                                                                                                  \
  inline void Get##NAME##TmpBufferFactorSize(const uint32_t typeSize, uint32_t& maxLiveNodeCount,                    \
                                             uint32_t& extraBuf) {                                                   \
    maxLiveNodeCount = detail::TemporaryVectors{HALF, FLOAT, REUSED}(typeSize, false);                               \
    extraBuf = 0;                                                                                                    \
  }
VNPU_TEMPORARY_SIZES(Acos, 6, 2, 2)
VNPU_TEMPORARY_SIZES(Acosh, 2, 1, 1)
VNPU_TEMPORARY_SIZES(Asin, 6, 2, 2)
VNPU_TEMPORARY_SIZES(Asinh, 3, 3, 3)
VNPU_TEMPORARY_SIZES(Atan, 12, 5, 5)
VNPU_TEMPORARY_SIZES(Atanh, 4, 1, 1)
VNPU_TEMPORARY_SIZES(Axpy, 4, 1, 1)
VNPU_TEMPORARY_SIZES(Ceil, 2, 1, 1)
VNPU_TEMPORARY_SIZES(Cos, 8, 3, 2)
VNPU_TEMPORARY_SIZES(Cosh, 6, 2, 2)
VNPU_TEMPORARY_SIZES(Digamma, 16, 7, 6)
VNPU_TEMPORARY_SIZES(Erf, 8, 3, 3)
VNPU_TEMPORARY_SIZES(Erfc, 16, 7, 7)
VNPU_TEMPORARY_SIZES(Floor, 2, 0, 0)
VNPU_TEMPORARY_SIZES(Fmod, 8, 1, 1)
VNPU_TEMPORARY_SIZES(Frac, 4, 0, 0)
VNPU_TEMPORARY_SIZES(GeGLU, 4, 0, 0)
VNPU_TEMPORARY_SIZES(Log, 0, 0, 0)
VNPU_TEMPORARY_SIZES(Log10, 0, 0, 0)
VNPU_TEMPORARY_SIZES(Round, 1, 0, 0)
VNPU_TEMPORARY_SIZES(Sign, 3, 3, 3)
VNPU_TEMPORARY_SIZES(Sin, 8, 3, 2)
VNPU_TEMPORARY_SIZES(Sinh, 4, 1, 1)
VNPU_TEMPORARY_SIZES(Tan, 10, 4, 4)
VNPU_TEMPORARY_SIZES(Tanh, 4, 1, 1)
VNPU_TEMPORARY_SIZES(Trunc, 2, 1, 1)
VNPU_TEMPORARY_SIZES(Xor, 1, 1, 1)
#undef VNPU_TEMPORARY_SIZES

// Vectors of floats: halves are converted first. The factor counts vectors of the input's own size.
inline void GetExpMaxMinTmpSize(const ge::Shape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                                uint32_t& maxValue, uint32_t& minValue) {
  const detail::TemporaryVectors floats =
      typeSize == sizeof(float) ? detail::TemporaryVectors{0, 3, 2} : detail::TemporaryVectors{0, 4, 4};
  detail::temporary_bytes(floats, srcShape, sizeof(float), isReuseSource, maxValue, minValue);
}
inline void GetExpTmpBufferFactorSize(const uint32_t typeSize, uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
  maxLiveNodeCount = typeSize == sizeof(float) ? 3 : 8;
  extraBuffer = 0;
}
inline void GetLgammaMaxMinTmpSize(const ge::Shape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                                   uint32_t& maxValue, uint32_t& minValue) {
  detail::temporary_bytes({26, 8, 7}, srcShape, typeSize, isReuseSource, maxValue, minValue);
}
inline void GetLgammaTmpBufferFactorSize(const uint32_t typeSize, uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
  maxLiveNodeCount = typeSize == sizeof(float) ? 8 : 13;
  extraBuffer = 0;
}

}  // namespace AscendC
