// Tilings and temporary memory of LayerNormGrad, LayerNormGradBeta, BatchNorm and GroupNorm: as norm_tiling.h.
#pragma once
#include "tiling/norm_tiling.h"

namespace AscendC {

// ---- LayerNormGrad of {B, S, H with its rest, H} ----

namespace detail {

inline uint32_t bits_of(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  return bits;
}
// Values of temporary memory that a piece keeps; half 9, and 4 where two lie in the sources.
inline uint32_t grad_values(uint32_t type_size, bool reuse) { return type_size == 2 ? 9 : reuse ? 4 : 6; }

// Where the values of a piece of `one` elements lie, one behind another.
inline void place_grad_values(uint32_t one, bool half, bool in_sources, tiling::LayerNormGradTiling& t) {
  t.tmpTensorBSHSize = t.pdVarTensorSize = t.pdMeanTensorSize = t.x1TensorSize = t.x2TensorSize = t.x3TensorSize = one;
  t.tmpTensorSize = t.tmpTensor1Size = t.tmpTensor2Size = one;
  t.pdVarTensorPos = one;
  t.pdMeanTensorPos = 2 * one;
  t.x1TensorPos = in_sources ? 0 : 3 * one;
  t.x2TensorPos = in_sources ? 0 : 4 * one;
  t.x3TensorPos = in_sources ? 3 * one : 5 * one;
  if (!half) return;
  t.tmpTensorPos = 6 * one;
  t.tmpTensor1Pos = 7 * one;
  t.tmpTensor2Pos = 8 * one;
}

}  // namespace detail

inline void GetLayerNormGradMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize,
                                          const bool isReuseSource, uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t length = detail::extent(srcShape, 2);
  const uint32_t all = detail::extent(srcShape, 0) * detail::extent(srcShape, 1) * length, square = length * length;
  const uint32_t values = detail::grad_values(typeSize, isReuseSource);
  maxValue = values * std::max(all, square) * typeSize;
  minValue = values * std::min(all, square) * typeSize;
}

template <typename Tiling>
void GetLayerNormGradNDTilingInfo(const TensorShape srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                                  const bool isReuseSource, Tiling& tiling) {
  tiling::LayerNormGradTiling t;
  t.stackBufferSize = stackBufferSize;
  t.bLength = detail::extent(srcShape, 0);
  t.sLength = detail::extent(srcShape, 1);
  t.hLength = detail::extent(srcShape, 2);
  t.originalHLength = detail::extent(srcShape, 3);
  if (t.hLength == 0 || t.originalHLength == 0 || typeSize == 0) return;
  // Rows that fit, up to whole blocks of them: more than fit where there are few.
  const uint32_t rows = stackBufferSize / 4 / detail::grad_values(typeSize, isReuseSource) / t.hLength;
  if (rows == 0) return;
  t.nohCalSize = detail::rounded_up(rows, detail::kRowBlockBytes / typeSize);
  t.oneCalSize = t.nohCalSize * t.hLength;
  const uint32_t all = t.bLength * t.sLength * t.hLength;
  t.loopNum = all / t.oneCalSize;
  t.tailSize = all % t.oneCalSize;
  t.nohTailSize = t.tailSize / t.hLength;
  detail::place_grad_values(t.oneCalSize, typeSize == 2, isReuseSource && typeSize == 4, t);
  t.lastDimValueBack = detail::bits_of(1.0f / static_cast<float>(t.originalHLength));
  t.lastDimValueBackMulTwo = detail::bits_of(2.0f / static_cast<float>(t.originalHLength));
  detail::hand_over(t, tiling);
}

// ---- LayerNormGradBeta of {B, S, H with its rest, H} ----

inline void GetLayerNormGradBetaMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize,
                                              const bool /*isReuseSource*/, uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t row = (typeSize == 2 ? 4 : 2) * detail::extent(srcShape, 2) * detail::kFloatBytes;
  maxValue = detail::extent(srcShape, 0) * detail::extent(srcShape, 1) * row;
  minValue = row;
}

template <typename Tiling>
void GetLayerNormGradBetaNDTilingInfo(const TensorShape srcShape, const uint32_t stackBufferSize,
                                      const uint32_t typeSize, const bool /*isReuseSource*/, Tiling& tiling) {
  tiling::LayerNormGradBetaTiling t;
  const bool half = typeSize == 2;
  t.bLength = detail::extent(srcShape, 0);
  t.sLength = detail::extent(srcShape, 1);
  t.hLength = detail::extent(srcShape, 2);
  t.originalHLength = detail::extent(srcShape, 3);
  t.bsLength = t.bLength * t.sLength;
  t.bshLength = t.bsLength * t.hLength;
  t.stackBufferSize = stackBufferSize / detail::kFloatBytes;
  if (t.hLength == 0 || t.stackBufferSize < 2 * t.hLength) return;
  t.numberOfTmpBuf = half ? 2 : 1;
  const uint32_t room = half ? (t.stackBufferSize - 2 * t.hLength) / 2 : t.stackBufferSize;
  t.oneCalSize = std::min(room / t.hLength * t.hLength, t.bshLength);
  if (t.oneCalSize == 0) return;
  t.loopRound = t.bshLength / t.oneCalSize;
  t.inputTailSize = t.bshLength % t.oneCalSize;
  t.inputTailPos = t.bshLength - t.inputTailSize;
  t.bsTailSize = t.inputTailSize / t.hLength;
  t.bshCurLength = t.oneCalSize;
  t.bsCurLength = t.oneCalSize / t.hLength;
  if (half) {
    t.betaTempTensorPos = t.hLength;
    t.inputDyTmpTensorPos = 2 * t.hLength;
    t.resForGammaTmpTensorPos = 2 * t.hLength + t.oneCalSize;
  }
  detail::hand_over(t, tiling);
}

// ---- BatchNorm of {B, S, H}, of which `originSrcShape` says how many batches are data ----

inline bool GetBatchNormMaxMinTmpSize(const TensorShape& srcShape, const TensorShape& originSrcShape,
                                      const uint32_t typeSize, const bool /*isReuseSource*/, uint32_t& maxValue,
                                      uint32_t& minValue, const bool isBasicBlock = false) {
  const uint32_t rows = detail::extent(originSrcShape, 0);
  const uint32_t columns = detail::extent(srcShape, 1) * detail::extent(srcShape, 2);
  if (isBasicBlock && (columns % 64 != 0 || rows % 8 != 0)) return false;
  const uint32_t numbers = 2 * detail::rounded_up(columns * detail::kFloatBytes, detail::kRowBlockBytes);
  maxValue = 3 * detail::rounded_up(rows * columns * detail::kFloatBytes, detail::kRowBlockBytes) + numbers;
  minValue = 3 * rows * (isBasicBlock ? 256 : typeSize == 2 ? 64 : 32) + numbers;
  return true;
}

template <typename Tiling>
bool GetBatchNormNDTilingInfo(const TensorShape& srcShape, const TensorShape& originSrcShape,
                              const uint32_t stackBufferByteSize, const uint32_t typeSize, const bool isReuseSource,
                              Tiling& tilling, const bool isBasicBlock = false) {
  if (srcShape.GetDimNum() != 3 || originSrcShape.GetDimNum() != 3 || typeSize == 0) return false;
  const uint32_t rows = detail::extent(originSrcShape, 0);
  const uint32_t columns = detail::extent(srcShape, 1) * detail::extent(srcShape, 2);
  uint32_t most = 0, least = 0;
  if (rows == 0 || columns * typeSize % detail::kRowBlockBytes != 0) return false;
  if (!GetBatchNormMaxMinTmpSize(srcShape, originSrcShape, typeSize, isReuseSource, most, least, isBasicBlock) ||
      stackBufferByteSize < least)
    return false;
  const uint32_t numbers =
      typeSize == detail::kFloatBytes ? 0 : 2 * detail::rounded_up(columns, detail::kFloatsPerBlock);
  const uint32_t block = rows * (typeSize == detail::kFloatBytes ? 8 : 16);
  tiling::BatchNormTiling t;
  t.tmpBufSize = stackBufferByteSize / detail::kFloatBytes;
  t.oneTmpSize = std::min((t.tmpBufSize - numbers) / 3 / block * block, rows * columns);
  if (isBasicBlock) t.oneTmpSize = t.oneTmpSize / rows / 64 * 64 * rows;
  if (t.oneTmpSize == 0) return false;
  t.originalBLength = rows;
  t.meanVarSize = columns;
  t.varianceTmpTensorPos = detail::rounded_up(columns, detail::kFloatsPerBlock);
  t.firstTmpStartPos = numbers;
  t.secondTmpStartPos = numbers + t.oneTmpSize;
  t.thirdTmpStartPos = numbers + 2 * t.oneTmpSize;
  t.loopRound = rows * columns / t.oneTmpSize;
  t.inputTailSize = rows * columns % t.oneTmpSize;
  t.inputTailPos = (rows * columns - t.inputTailSize) / rows;
  t.meanVarTailSize = t.inputTailSize / rows;
  t.meanVarTailPos = columns - t.meanVarTailSize;
  t.bshCurLength = t.oneTmpSize;
  t.shCurLength = t.oneTmpSize / rows;
  t.firstDimValueBack = 1.0f / static_cast<float>(rows);
  t.castHalfRepStride = 4;
  t.shCurLengthBlockNum = t.shCurLength / 8;
  t.castHalfOutRepStride = columns / 16;
  detail::hand_over(t, tilling);
  return true;
}

// ---- GroupNorm of {N, C, H, W} ----

namespace detail {

struct Groups {
  uint32_t count, depth, plane, one;  // of all images; channels; elements of a plane and of a group, with their rest
  uint32_t hw, type_size;
};
inline Groups groups_of(const TensorShape& shape, uint32_t type_size, uint32_t groups) {
  const uint32_t hw = extent(shape, 2) * extent(shape, 3), depth = extent(shape, 1) / groups;
  const uint32_t plane = rounded_up(hw * type_size, kRowBlockBytes) / type_size;
  return {extent(shape, 0) * groups, depth, plane, depth * plane, hw, type_size};
}

// Whether two reductions of all groups at once can sum them.
inline bool small_groups(const Groups& g) {
  uint32_t k = 8;
  while (g.one / kFloatsPerBlock % k != 0) k--;
  return g.plane <= 64 && g.one <= 64 * k;
}
// Groups at once, of small ones no more than a reduction has repeats.
inline uint32_t groups_at_once(const Groups& g, uint32_t fit) {
  if (!small_groups(g)) return fit;
  uint32_t lanes = std::min(g.one, 64u);
  while (g.one % lanes != 0) lanes -= 8;
  return std::min(fit, 255 / (g.one / lanes) / 8 * 8);
}

}  // namespace detail

inline void GetGroupNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                                      const uint32_t groupNum, uint32_t& maxValue, uint32_t& minValue) {
  if (typeSize == 0 || groupNum == 0 || srcShape.GetShapeSize() <= 0) return;
  const detail::Groups g = detail::groups_of(srcShape, typeSize, groupNum);
  const uint32_t values = isReuseSource && typeSize == detail::kFloatBytes ? 2 : 3;
  const uint32_t numbers = 2 * detail::rounded_up(g.count * detail::kFloatBytes, detail::kRowBlockBytes);
  const uint32_t planes = detail::extent(srcShape, 0) * detail::extent(srcShape, 1);
  maxValue = values * planes * g.plane * detail::kFloatBytes + numbers;
  minValue = values * g.one * detail::kFloatBytes + numbers;
}

template <typename Tiling>
void GetGroupNormNDTilingInfo(const TensorShape& srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                              const bool isReuseSource, const uint32_t groupNum, Tiling& tiling) {
  if (typeSize == 0 || groupNum == 0 || srcShape.GetShapeSize() <= 0) return;
  const detail::Groups g = detail::groups_of(srcShape, typeSize, groupNum);
  const detail::NormRows n = detail::norm_rows(g.count, g.one, typeSize, isReuseSource);
  const uint32_t floats = stackBufferSize / detail::kRowBlockBytes * detail::kFloatsPerBlock;
  if (g.one == 0 || floats < n.numbers) return;
  const uint32_t channels = detail::extent(srcShape, 1), all = detail::extent(srcShape, 0) * channels * g.plane;
  uint32_t at_once = detail::groups_at_once(g, (floats - n.numbers) / n.values / g.one);
  if (at_once == 0 || (typeSize == 2 && at_once * g.one < channels)) return;
  if (at_once * g.one > all) at_once = g.count;
  const uint32_t piece = std::min(at_once * g.one, all);
  tiling::GroupNormTiling t;
  detail::cut_norm_rows(n, floats, piece, t);
  t.inputXSize = all;
  t.loopRound = all / piece;
  t.inputTailSize = all % piece;
  t.inputTailPos = all - t.inputTailSize;
  t.meanVarTailSize = t.inputTailSize / g.one;
  t.meanVarTailPos = g.count - t.meanVarTailSize;
  t.n = detail::extent(srcShape, 0);
  t.c = channels;
  t.hw = g.hw;
  t.g = groupNum;
  t.d = g.depth;
  t.hwAlignSize = g.plane;
  t.dhwAlignSize = g.one;
  t.meanTmpTensorSize = t.varianceTmpTensorPos = t.varianceTmpTensorSize;
  t.thirdTmpStartPos = n.numbers + 2 * piece;
  t.bshCurLength = piece;
  t.bsCurLength = at_once;
  t.factor = 1.0f / static_cast<float>(g.depth * g.hw);
  t.smallShape = detail::small_groups(g);
  detail::hand_over(t, tiling);
}

}  // namespace AscendC
