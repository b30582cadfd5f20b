// Tilings and temporary memory of the normalizing APIs over rows: LayerNorm in its two forms, Normalize, Welford's
// steps, DeepNorm (AscendC reference, their Tiling pages). Fields and values are those of asc-devkit for architecture
// 2201, because tiling programs hand them on and divide the Unified Buffer by the sizes.
#pragma once
#include <algorithm>
#include <cstdint>

#include "graph/tensor.h"
#include "kernel_tiling/norm_tiling_data.h"
#include "register/tilingdata_base.h"
#include "tiling/row_tiling.h"

namespace api_tilings {

#define VNPU_FIELD(type, name) TILING_DATA_FIELD_DEF(type, name);
#define VNPU_NORM_TILING(NAME, FIELDS) \
  BEGIN_TILING_DATA_DEF(NAME)          \
  FIELDS(VNPU_FIELD)                   \
  END_TILING_DATA_DEF;
VNPU_NORM_TILING(LayerNormTiling, VNPU_LAYER_NORM_TILING_FIELDS)
VNPU_NORM_TILING(LayerNormSeparateTiling, VNPU_LAYER_NORM_SEPARATE_TILING_FIELDS)
VNPU_NORM_TILING(LayerNormGradTiling, VNPU_LAYER_NORM_GRAD_TILING_FIELDS)
VNPU_NORM_TILING(LayerNormGradBetaTiling, VNPU_LAYER_NORM_GRAD_BETA_TILING_FIELDS)
VNPU_NORM_TILING(BatchNormTiling, VNPU_BATCH_NORM_TILING_FIELDS)
VNPU_NORM_TILING(DeepNormTiling, VNPU_LAYER_NORM_TILING_FIELDS)
VNPU_NORM_TILING(GroupNormTiling, VNPU_GROUP_NORM_TILING_FIELDS)
#undef VNPU_NORM_TILING
#undef VNPU_FIELD

}  // namespace api_tilings

// Files with host and kernel in one say these names without a namespace in the kernel.
#ifdef __aicore__
using AscendC::tiling::BatchNormTiling;
using AscendC::tiling::DeepNormTiling;
using AscendC::tiling::GroupNormTiling;
using AscendC::tiling::LayerNormGradBetaTiling;
using AscendC::tiling::LayerNormGradTiling;
using AscendC::tiling::LayerNormSeparateTiling;
using AscendC::tiling::LayerNormTiling;
using AscendC::tiling::RmsNormTiling;
#endif

namespace AscendC {
namespace detail {

// A tiling that was worked out as a plain structure, to what the tiling function holds: the same, or a tiling class.
#define VNPU_FIELD(type, name) to.set_##name(from.name);
#define VNPU_HAND_OVER(NAME, FIELDS)                                               \
  inline void hand_over(const tiling::NAME& from, tiling::NAME& to) { to = from; } \
  inline void hand_over(const tiling::NAME& from, api_tilings::NAME& to) { FIELDS(VNPU_FIELD) }
VNPU_HAND_OVER(LayerNormTiling, VNPU_LAYER_NORM_TILING_FIELDS)
VNPU_HAND_OVER(LayerNormSeparateTiling, VNPU_LAYER_NORM_SEPARATE_TILING_FIELDS)
VNPU_HAND_OVER(LayerNormGradTiling, VNPU_LAYER_NORM_GRAD_TILING_FIELDS)
VNPU_HAND_OVER(LayerNormGradBetaTiling, VNPU_LAYER_NORM_GRAD_BETA_TILING_FIELDS)
VNPU_HAND_OVER(BatchNormTiling, VNPU_BATCH_NORM_TILING_FIELDS)
VNPU_HAND_OVER(DeepNormTiling, VNPU_LAYER_NORM_TILING_FIELDS)
VNPU_HAND_OVER(GroupNormTiling, VNPU_GROUP_NORM_TILING_FIELDS)
#undef VNPU_HAND_OVER
#undef VNPU_FIELD

constexpr uint32_t kFloatBytes = 4;

inline uint32_t rounded_up(uint32_t n, uint32_t unit) { return (n + unit - 1) / unit * unit; }
inline uint32_t extent(const ge::Shape& shape, size_t axis) {
  return axis < shape.GetDimNum() ? static_cast<uint32_t>(shape.GetDim(axis)) : 0;
}

// Rows, their length, how many temporary values a piece has, and floats for means and variances besides.
struct NormRows {
  uint32_t rows = 0, length = 0, values = 3, numbers = 0;
};

// Bytes for all rows at once, and for one; means and variances twice.
inline void norm_sizes(const NormRows& n, uint32_t& most, uint32_t& least) {
  const uint32_t numbers = 2 * rounded_up(n.rows * kFloatBytes, kRowBlockBytes);
  most = n.values * rounded_up(n.rows * n.length * kFloatBytes, kRowBlockBytes) + numbers;
  least = n.values * rounded_up(n.length * kFloatBytes, kRowBlockBytes) + numbers;
}

// Elements of a piece: whole rows, as many as fit.
inline uint32_t norm_piece(const NormRows& n, uint32_t floats) {
  if (n.length == 0 || floats < n.numbers) return 0;
  return std::min((floats - n.numbers) / n.values / n.length * n.length, n.rows * n.length);
}

// What LayerNorm's tilings have in common, and DeepNorm's.
template <typename Tiling>
void cut_norm_rows(const NormRows& n, uint32_t floats, uint32_t piece, Tiling& t) {
  const uint32_t all = n.rows * n.length;
  t.inputXSize = all;
  t.meanVarSize = n.rows;
  t.numberOfTmpBuf = n.values;
  t.varianceTmpTensorSize = rounded_up(n.rows, kFloatsPerBlock);
  t.tmpBufSize = floats;
  t.oneTmpSize = t.inputRoundSize = piece;
  t.firstTmpStartPos = n.numbers;
  t.secondTmpStartPos = n.numbers + piece;
  t.loopRound = all / piece;
  t.inputTailSize = all % piece;
  t.inputTailPos = all - t.inputTailSize;
  t.meanVarRoundSize = piece / n.length;
  t.meanVarTailSize = t.inputTailSize / n.length;
  t.meanVarTailPos = n.rows - t.meanVarTailSize;
}

// The tiling of [b, s, length] with `valid` elements of data in a row.
template <typename Tiling>
Tiling cut_batches(const NormRows& n, uint32_t b, uint32_t s, uint32_t valid, uint32_t floats, uint32_t piece) {
  Tiling t;
  cut_norm_rows(n, floats, piece, t);
  t.bLength = b;
  t.sLength = s;
  t.hLength = n.length;
  t.originalHLength = valid;
  t.meanTmpTensorSize = t.varianceTmpTensorPos = t.varianceTmpTensorSize;
  t.thirdTmpStartPos = n.numbers + 2 * piece;
  t.bshCurLength = piece;
  t.bsCurLength = t.meanVarRoundSize;
  t.lastDimValueBack = 1.0f / static_cast<float>(valid);
  return t;
}

// Half keeps its means and variances as floats; with reuse floats keep a value in the source.
inline NormRows norm_rows(uint32_t rows, uint32_t length, uint32_t type_size, bool reuse) {
  const bool half = type_size != kFloatBytes;
  return {rows, length, reuse && !half ? 2u : 3u, half ? 2 * rounded_up(rows, kFloatsPerBlock) : 0};
}

}  // namespace detail

// ---- LayerNorm of {B, S, H with its rest, H} ----

inline void GetLayerNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                                      uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t rows = detail::extent(srcShape, 0) * detail::extent(srcShape, 1);
  detail::norm_sizes(detail::norm_rows(rows, detail::extent(srcShape, 2), typeSize, isReuseSource), maxValue, minValue);
}

template <typename Tiling>
auto GetLayerNormNDTilingInfo(const TensorShape& srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                              const bool isReuseSource, Tiling& tiling)
    -> decltype(detail::hand_over(tiling::LayerNormTiling(), tiling)) {
  const uint32_t b = detail::extent(srcShape, 0), s = detail::extent(srcShape, 1);
  const detail::NormRows n = detail::norm_rows(b * s, detail::extent(srcShape, 2), typeSize, isReuseSource);
  const uint32_t floats = stackBufferSize / detail::kFloatBytes, piece = detail::norm_piece(n, floats);
  if (piece == 0) return;
  detail::hand_over(detail::cut_batches<tiling::LayerNormTiling>(n, b, s, detail::extent(srcShape, 3), floats, piece),
                    tiling);
}
// Its older name.
inline void GetLayerNormNDTillingInfo(const TensorShape& srcShape, const uint32_t stackBufferSize,
                                      const uint32_t typeSize, const bool isReuseSource,
                                      api_tilings::LayerNormTiling& tilling) {
  GetLayerNormNDTilingInfo(srcShape, stackBufferSize, typeSize, isReuseSource, tilling);
}

// ---- Normalize of {A, R} ----

inline void GetNormalizeMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSizeU, const uint32_t typeSizeT,
                                      const bool /*isReuseSource*/, const bool isComputeRstd, const bool isOnlyOutput,
                                      uint32_t& maxValue, uint32_t& minValue) {
  if (!isComputeRstd || isOnlyOutput || typeSizeU == 0 || typeSizeT == 0) return;
  const uint32_t rows = detail::extent(srcShape, 0);
  const uint32_t row = detail::rounded_up(detail::extent(srcShape, 1), detail::kRowBlockBytes / typeSizeT) * 4;
  maxValue = 2 * row + 2 * detail::rounded_up(rows, 8) * row;
  minValue = std::max(detail::rounded_up(rows * 4, detail::kRowBlockBytes), (typeSizeU == 4 ? 2 : 4) * row);
}

// ---- LayerNorm of {A, R} ----

inline void GetLayerNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                                      const bool isComputeRstd, const bool isOnlyOutput, uint32_t& maxValue,
                                      uint32_t& minValue) {
  if (typeSize == 0 || isOnlyOutput) return;
  const uint32_t rows = detail::extent(srcShape, 0), numbers = detail::rounded_up(rows * 4, detail::kRowBlockBytes);
  const uint32_t row = detail::rounded_up(detail::extent(srcShape, 1), detail::kRowBlockBytes / typeSize) * 4;
  uint32_t most = 0, least = 0;
  GetNormalizeMaxMinTmpSize(srcShape, typeSize, typeSize, isReuseSource, isComputeRstd, isOnlyOutput, most, least);
  maxValue = std::max(2 * rows * row, most) + numbers;
  minValue = std::max(2 * row, least) + numbers;
}

template <typename Tiling>
void GetLayerNormNDTilingInfo(const TensorShape& srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                              const bool /*isReuseSource*/, const bool /*isComputeRstd*/, Tiling& tiling) {
  if (typeSize == 0) return;
  const uint32_t rows = detail::extent(srcShape, 0), valid = detail::extent(srcShape, 1);
  const detail::NormRows n{rows, detail::rounded_up(valid, detail::kRowBlockBytes / typeSize), 2,
                           detail::rounded_up(rows, detail::kFloatsPerBlock)};
  const uint32_t floats = stackBufferSize / detail::kFloatBytes, piece = detail::norm_piece(n, floats);
  if (piece == 0) return;
  tiling::LayerNormSeparateTiling t;
  detail::cut_norm_rows(n, floats, piece, t);
  t.aLength = rows;
  t.rLength = valid;
  t.arCurLength = piece;
  t.aCurLength = t.meanVarRoundSize;
  t.rValueBack = 1.0f / static_cast<float>(valid);
  detail::hand_over(t, tiling);
}

// ---- Welford ----

// Of {1, columns}: repeats for each value that a piece keeps.
inline void GetWelfordUpdateMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSizeT,
                                          const uint32_t /*typeSizeU*/, const bool isReuseSource,
                                          const bool /*isInplace*/, uint32_t& maxValue, uint32_t& minValue) {
  if (srcShape.GetDimNum() != 2) return;
  minValue = (typeSizeT == 2 ? 3 : isReuseSource ? 1 : 2) * 256;
  maxValue = (detail::extent(srcShape, 0) * detail::extent(srcShape, 1) + 63) / 64 * minValue;
}

inline void GetWelfordFinalizeMaxMinTmpSize(const TensorShape& srcShape, const uint32_t /*typeSize*/,
                                            const bool /*isReuseSource*/, uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t columns = detail::extent(srcShape, 0);
  if (srcShape.GetDimNum() != 1 || columns == 0 || columns % detail::kFloatsPerBlock != 0) return;
  minValue = 4 * 64 * detail::kFloatBytes;
  maxValue = 2 * (64 + std::max(columns, 64u)) * detail::kFloatBytes;
}

// ---- DeepNorm of {B, S, H} ----

inline bool GetDeepNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                                     const bool isBasicBlock, uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t rows = detail::extent(srcShape, 0) * detail::extent(srcShape, 1), length = detail::extent(srcShape, 2);
  if (isBasicBlock && (length == 0 || length % 64 != 0 || rows % 8 != 0)) return false;
  detail::norm_sizes(detail::norm_rows(rows, length, typeSize, isReuseSource), maxValue, minValue);
  return true;
}

namespace detail {
inline bool deep_norm_shapes(const TensorShape& shape, const TensorShape& origin, uint32_t typeSize, bool basic) {
  const uint32_t length = extent(shape, 2), valid = extent(origin, 2);
  const bool same = extent(shape, 0) == extent(origin, 0) && extent(shape, 1) == extent(origin, 1);
  return same && valid > 0 && valid <= length && length * typeSize % kRowBlockBytes == 0 && length <= 2040 &&
         (!basic || valid == length);
}
}  // namespace detail

template <typename Tiling>
bool GetDeepNormTilingInfo(const TensorShape& srcShape, const TensorShape& originSrcShape,
                           const uint32_t stackBufferSize, const uint32_t typeSize, const bool isReuseSource,
                           const bool isBasicBlock, Tiling& tiling) {
  uint32_t most = 0, least = 0;
  if (!GetDeepNormMaxMinTmpSize(srcShape, typeSize, isReuseSource, isBasicBlock, most, least)) return false;
  if (stackBufferSize < least || !detail::deep_norm_shapes(srcShape, originSrcShape, typeSize, isBasicBlock))
    return false;
  const uint32_t b = detail::extent(srcShape, 0), s = detail::extent(srcShape, 1);
  const detail::NormRows n = detail::norm_rows(b * s, detail::extent(srcShape, 2), typeSize, isReuseSource);
  const uint32_t floats = stackBufferSize / detail::kFloatBytes, group = 8 * n.length;
  uint32_t piece = detail::norm_piece(n, floats);
  if (isBasicBlock && piece >= group) piece -= piece % group;
  if (piece == 0) return false;
  detail::hand_over(
      detail::cut_batches<tiling::DeepNormTiling>(n, b, s, detail::extent(originSrcShape, 2), floats, piece), tiling);
  return true;
}

}  // namespace AscendC
