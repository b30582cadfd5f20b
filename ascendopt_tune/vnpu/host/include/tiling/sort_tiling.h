// TopK's tiling and temporary memory on the host (AscendC reference, TopK Tiling). Fields and sizes are those of
// asc-devkit for architecture 2201, because tiling programs hand them on and divide the Unified Buffer by the sizes.
#pragma once
#include <algorithm>
#include <cstdint>

#include "graph/types.h"
#include "kernel_tiling/sort_tiling_data.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace api_tilings {

#define VNPU_FIELD(type, name) TILING_DATA_FIELD_DEF(type, name);
BEGIN_TILING_DATA_DEF(TopkTiling)
VNPU_TOPK_TILING_FIELDS(VNPU_FIELD)
END_TILING_DATA_DEF;
#undef VNPU_FIELD

}  // namespace api_tilings

namespace AscendC {
namespace detail {

constexpr uint32_t kSortRecordBytes = 8, kTopKPatternBytes = 64;

// What one call is about; `size`: bytes of a score.
struct TopKShape {
  int32_t inner = 0, outter = 0, k = 0;
  uint32_t size = 4;
  bool given_indices = false, small = false, largest = true;
};

constexpr uint32_t up_to(uint32_t value, uint32_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Bytes of temporary memory: records twice, or once and patterns; scores turned round; indices.
inline uint32_t topk_bytes(const TopKShape& s) {
  const uint32_t all = static_cast<uint32_t>(s.inner) * (s.small ? static_cast<uint32_t>(s.outter) : 1);
  uint32_t bytes = all * kSortRecordBytes * (s.small ? 1 : 2);
  if (s.small) bytes += kTopKPatternBytes + (s.largest ? 0 : all * uint32_t(sizeof(float)));
  return bytes + (s.given_indices ? 0 : all * uint32_t(sizeof(int32_t)));
}

// `width` bits a record, bit `first` of each of the first k: 32 bits of that from record `from`.
inline uint32_t topk_pattern(int32_t k, int32_t from, uint32_t first, uint32_t width) {
  uint32_t bits = 0;
  for (uint32_t at = 0; at < 32 / width; at++)
    if (from + int32_t(at) < k) bits |= 1u << (at * width + first);
  return bits;
}

inline void set_patterns(const TopKShape& s, tiling::TopkTiling& t) {
  t.vreduceIdxMask0 = topk_pattern(s.k, 0, 1, 2);
  t.vreduceIdxMask1 = topk_pattern(s.k, 16, 1, 2);
  if (s.size == sizeof(float)) {
    t.vreduceValMask0 = topk_pattern(s.k, 0, 0, 2);
    t.vreduceValMask1 = topk_pattern(s.k, 16, 0, 2);
    return;
  }
  uint16_t* const words[] = {&t.vreducehalfValMask0, &t.vreducehalfValMask1, &t.vreducehalfValMask2,
                             &t.vreducehalfValMask3, &t.vreducehalfValMask4, &t.vreducehalfValMask5,
                             &t.vreducehalfValMask6, &t.vreducehalfValMask7};
  for (int32_t i = 0; i < 8; i++) *words[i] = static_cast<uint16_t>(topk_pattern(s.k, 4 * i, 0, 4));
}

inline tiling::TopkTiling small_topk_tiling(const TopKShape& s) {
  tiling::TopkTiling t;
  const int32_t all = s.inner * s.outter, size = static_cast<int32_t>(s.size);
  t.innerDataSize = all * int32_t(kSortRecordBytes) / size;
  t.maskOffset = s.outter * s.k;
  t.topkMrgSrc1MaskSizeOffset = t.innerDataSize + (s.largest ? 0 : all);
  t.tmpLocalSize = t.topkMrgSrc1MaskSizeOffset + int32_t(kTopKPatternBytes) / size;
  if (!s.given_indices) {
    t.topkNSmallSrcIndexOffset = t.tmpLocalSize;
    t.tmpLocalSize += all * int32_t(sizeof(int32_t)) / size;
  }
  set_patterns(s, t);
  return t;
}

inline tiling::TopkTiling normal_topk_tiling(const TopKShape& s) {
  tiling::TopkTiling t;
  const int32_t record = int32_t(kSortRecordBytes / s.size), size = static_cast<int32_t>(s.size);
  t.kAlignTwoBytes = static_cast<int32_t>(up_to(static_cast<uint32_t>(s.k), 16));
  t.innerDataSize = s.inner * record;
  t.tmpLocalSize = 2 * t.innerDataSize;
  t.copyUbToUbBlockCount = static_cast<uint32_t>(s.inner) * kSortRecordBytes / 32;
  t.sortRepeat = static_cast<uint32_t>(s.inner) / 32;
  t.mrgSortRepeat = s.inner / 4;
  t.maskOffset = s.outter * static_cast<int32_t>(up_to(static_cast<uint32_t>(s.k), 32 / s.size));
  t.maskVreducev2FourBytes = 2 * s.k;
  t.maskVreducev2TwoBytes = 4 * s.k;
  t.mrgSortSrc1offset = t.mrgSortTwoQueueSrc1Offset = record;
  t.mrgSortSrc2offset = 2 * record;
  t.mrgSortSrc3offset = 3 * record;
  t.mrgFourQueueTailPara1 = s.inner * 2;
  t.mrgFourQueueTailPara2 = 4 / size;
  if (!s.given_indices) {
    t.srcIndexOffset = t.tmpLocalSize;
    t.tmpLocalSize += s.inner * int32_t(sizeof(int32_t)) / size;
  }
  return t;
}

inline tiling::TopkTiling topk_tiling(const TopKShape& s) {
  tiling::TopkTiling t = s.small ? small_topk_tiling(s) : normal_topk_tiling(s);
  t.allDataSize = s.inner * s.outter;
  t.kAlignFourBytes = static_cast<int32_t>(up_to(static_cast<uint32_t>(s.k), 8));
  return t;
}

}  // namespace detail

inline bool GetTopKMaxMinTmpSize(const platform_ascendc::PlatformAscendC& /*ascendcPlatform*/, const int32_t inner,
                                 const int32_t outter, const bool /*isReuseSource*/, const bool isInitIndex,
                                 enum TopKMode mode, const bool isLargest, const uint32_t dataTypeSize,
                                 uint32_t& maxValue, uint32_t& minValue) {
  maxValue = minValue =
      detail::topk_bytes({inner, outter, 1, dataTypeSize, isInitIndex, mode == TopKMode::TOPK_NSMALL, isLargest});
  return true;
}
// The form for RADIX_SELECT, which architecture 2201 doesn't have: nothing is found out, as documented.
inline bool GetTopKMaxMinTmpSize(const int32_t, const int32_t, const int32_t, const bool, const bool, enum TopKMode,
                                 const bool, ge::DataType, const TopKConfig&, uint32_t&, uint32_t&) {
  return false;
}

inline bool TopKTilingFunc(const platform_ascendc::PlatformAscendC& /*ascendcPlatform*/, const int32_t inner,
                           const int32_t outter, const int32_t k, const uint32_t dataTypeSize, const bool isInitIndex,
                           enum TopKMode mode, const bool isLargest, tiling::TopkTiling& topKTiling) {
  if (dataTypeSize == 0) return false;
  topKTiling =
      detail::topk_tiling({inner, outter, k, dataTypeSize, isInitIndex, mode == TopKMode::TOPK_NSMALL, isLargest});
  return true;
}
inline bool TopKTilingFunc(const platform_ascendc::PlatformAscendC& ascendcPlatform, const int32_t inner,
                           const int32_t outter, const int32_t k, const uint32_t dataTypeSize, const bool isInitIndex,
                           enum TopKMode mode, const bool isLargest, api_tilings::TopkTiling& topKTiling) {
  tiling::TopkTiling found;
  if (!TopKTilingFunc(ascendcPlatform, inner, outter, k, dataTypeSize, isInitIndex, mode, isLargest, found))
    return false;
#define VNPU_FIELD(type, name) topKTiling.set_##name(found.name);
  VNPU_TOPK_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
  return true;
}

}  // namespace AscendC
