// Tiling of the high-level APIs that work row by row: SoftMax, LogSoftMax, SoftmaxFlashV2, RmsNorm (AscendC reference,
// their Tiling pages). Fields and values are those of asc-devkit for architecture 2201, because tiling programs hand
// them on and divide the Unified Buffer by the sizes; the virtual NPU's own bodies need the shapes alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "graph/tensor.h"
#include "graph/types.h"
#include "kernel_tiling/norm_tiling_data.h"
#include "kernel_tiling/softmax_tiling_data.h"
#include "register/tilingdata_base.h"

namespace api_tilings {

#define VNPU_FIELD(name) TILING_DATA_FIELD_DEF(uint32_t, name);
#define VNPU_SOFTMAX_TILING(NAME)        \
  BEGIN_TILING_DATA_DEF(NAME)            \
  VNPU_SOFTMAX_TILING_FIELDS(VNPU_FIELD) \
  END_TILING_DATA_DEF;
VNPU_SOFTMAX_TILING(SoftMaxTiling)
VNPU_SOFTMAX_TILING(LogSoftMaxTiling)
#undef VNPU_SOFTMAX_TILING
#undef VNPU_FIELD

#define VNPU_FIELD(type, name) TILING_DATA_FIELD_DEF(type, name);
BEGIN_TILING_DATA_DEF(RmsNormTiling)
VNPU_RMS_NORM_TILING_FIELDS(VNPU_FIELD)
END_TILING_DATA_DEF;
#undef VNPU_FIELD

}  // namespace api_tilings

namespace AscendC {
namespace detail {

constexpr uint32_t kRowBlockBytes = 32, kFloatsPerBlock = 8, kFloatsPerRepeat = 64;

// Extents of a tensor whose last axis is a row.
struct Rows {
  uint32_t count = 0, length = 0;
  explicit Rows(const ge::Shape& shape) {
    if (shape.GetShapeSize() <= 0) return;
    length = static_cast<uint32_t>(shape.GetDim(shape.GetDimNum() - 1));
    count = static_cast<uint32_t>(shape.GetShapeSize()) / length;
  }
};

// Floats that one row takes: itself, its statistics (a block), and a repeat for the reductions.
inline uint32_t softmax_row_floats(const Rows& rows, uint32_t type_size) {
  return kRowBlockBytes / type_size + rows.length + kFloatsPerRepeat;
}

inline void hand_over(const tiling::SoftMaxTiling& from, tiling::SoftMaxTiling& to) { to = from; }
inline void hand_over(const tiling::SoftMaxTiling& from, tiling::LogSoftMaxTiling& to) {
#define VNPU_FIELD(name) to.name = from.name;
  VNPU_SOFTMAX_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
}
template <typename Tiling>
void hand_over(const tiling::SoftMaxTiling& from, Tiling& to) {
#define VNPU_FIELD(name) to.set_##name(from.name);
  VNPU_SOFTMAX_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
}

// Pieces of as many rows as fit, each of `row_floats` floats.
template <typename Tiling>
void row_tiling(const Rows& rows, uint32_t type_size, uint32_t bytes, uint32_t row_floats, Tiling& tiling) {
  if (rows.length == 0) return;
  hand_over(tiling::detail::row_tiling(rows.count, rows.length, kRowBlockBytes / type_size, bytes / 4, row_floats),
            tiling);
}

template <typename Tiling>
void softmax_tiling(const ge::Shape& shape, uint32_t type_size, uint32_t bytes, Tiling& tiling) {
  const Rows rows(shape);
  if (type_size != 0) row_tiling(rows, type_size, bytes, softmax_row_floats(rows, type_size), tiling);
}

}  // namespace detail

using TensorShape = ge::Shape;
using TensorDataType = ge::DataType;

// Bytes of temporary memory: for all rows at once, and for one.
#define VNPU_SOFTMAX_SIZES(NAME)                                                                                     \
  inline uint32_t Get##NAME##MaxTmpSize(const TensorShape& srcShape, const uint32_t dataTypeSize,                    \
                                        const bool /*isReuseSource*/) {                                              \
    const detail::Rows rows(srcShape);                                                                               \
    return dataTypeSize ? rows.count * detail::softmax_row_floats(rows, dataTypeSize) * uint32_t(sizeof(float)) : 0; \
  }                                                                                                                  \
  inline uint32_t Get##NAME##MinTmpSize(const TensorShape& srcShape, const uint32_t dataTypeSize,                    \
                                        const bool /*isReuseSource*/) {                                              \
    const detail::Rows rows(srcShape);                                                                               \
    return dataTypeSize ? detail::softmax_row_floats(rows, dataTypeSize) * uint32_t(sizeof(float)) : 0;              \
  }                                                                                                                  \
  template <typename Tiling>                                                                                         \
  void NAME##TilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize, const uint32_t localWorkSpaceSize, \
                        Tiling& softmaxTiling) {                                                                     \
    detail::softmax_tiling(srcShape, dataTypeSize, localWorkSpaceSize, softmaxTiling);                               \
  }
VNPU_SOFTMAX_SIZES(SoftMax)
VNPU_SOFTMAX_SIZES(LogSoftMax)
#undef VNPU_SOFTMAX_SIZES

// Whether a tiling is one of basic blocks: no rows are left over, and a row is whole repeats, at least 256 bytes and
// fewer than 2048 elements. Tilings are the host's classes or AscendC::tiling's.
inline bool IsBasicBlockInSoftMax(const tiling::SoftMaxTiling& tiling, const uint32_t dataTypeSize = 2) {
  return dataTypeSize != 0 && tiling.tailM == 0 && tiling.srcK >= 256 / dataTypeSize && tiling.srcK < 2048 &&
         tiling.srcK % detail::kFloatsPerRepeat == 0;
}
inline bool IsBasicBlockInSoftMax(api_tilings::SoftMaxTiling& tiling, const uint32_t dataTypeSize = 2) {
  tiling::SoftMaxTiling plain;
  plain.srcK = tiling.get_srcK();
  plain.tailM = tiling.get_tailM();
  return IsBasicBlockInSoftMax(plain, dataTypeSize);
}

// SoftmaxFlash, the first form: floats for all rows, or for one (asc-devkit's numbers).
inline uint32_t GetSoftMaxFlashMaxTmpSize(const TensorShape& srcShape, const uint32_t dataTypeSize, const bool isUpdate,
                                          const bool /*isReuseSource*/) {
  const detail::Rows rows(srcShape);
  return dataTypeSize == 0 ? 0
                           : rows.count * tiling::detail::first_flash_floats(rows.length, dataTypeSize, isUpdate) * 4;
}
inline uint32_t GetSoftMaxFlashMinTmpSize(const TensorShape& srcShape, const uint32_t dataTypeSize, const bool isUpdate,
                                          const bool /*isReuseSource*/) {
  const detail::Rows rows(srcShape);
  return dataTypeSize == 0 || rows.count == 0
             ? 0
             : tiling::detail::first_flash_floats(rows.length, dataTypeSize, isUpdate) * 4;
}

template <typename Tiling>
void SoftMaxFlashTilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize, const uint32_t localWorkSpaceSize,
                            Tiling& softmaxFlashTiling, const bool isUpdate = false) {
  const detail::Rows rows(srcShape);
  if (dataTypeSize == 0) return;
  detail::row_tiling(rows, dataTypeSize, localWorkSpaceSize,
                     tiling::detail::first_flash_floats(rows.length, dataTypeSize, isUpdate), softmaxFlashTiling);
}

// SoftmaxGrad, and with isFront SoftmaxGradFront.
inline uint32_t GetSoftMaxGradMaxTmpSize(const TensorShape& srcShape, const uint32_t dataTypeSize, const bool isFront,
                                         const bool /*isReuseSource*/) {
  const detail::Rows rows(srcShape);
  if (dataTypeSize == 0) return 0;
  return rows.count * tiling::detail::grad_row_floats(rows.length, dataTypeSize, isFront) * 4;
}
inline uint32_t GetSoftMaxGradMinTmpSize(const TensorShape& srcShape, const uint32_t dataTypeSize, const bool isFront,
                                         const bool /*isReuseSource*/) {
  const detail::Rows rows(srcShape);
  if (dataTypeSize == 0 || rows.count == 0) return 0;
  return tiling::detail::grad_row_floats(rows.length, dataTypeSize, isFront) * 4;
}
template <typename Tiling>
void SoftMaxGradTilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize, const uint32_t localWorkSpaceSize,
                           Tiling& softmaxGradTiling, const bool isFront = false) {
  const detail::Rows rows(srcShape);
  if (dataTypeSize == 0) return;
  detail::row_tiling(rows, dataTypeSize, localWorkSpaceSize,
                     tiling::detail::grad_row_floats(rows.length, dataTypeSize, isFront), softmaxGradTiling);
}

// SoftmaxFlashV2: `dataTypeSize1` is the source's, `dataTypeSize2` that of sums and maxima.
inline uint32_t GetSoftMaxFlashV2MaxTmpSize(const TensorShape& srcShape, const uint32_t dataTypeSize1,
                                            const uint32_t dataTypeSize2, const bool /*isUpdate*/,
                                            const bool isBasicBlock = false, const bool /*isFlashOutputBrc*/ = false) {
  const detail::Rows rows(srcShape);
  if (rows.length == 0 || dataTypeSize1 == 0 || dataTypeSize2 == 0) return 0;
  const bool basic = isBasicBlock && rows.length % detail::kFloatsPerRepeat == 0 && rows.count % 8 == 0;
  uint32_t count = rows.count;
  while (basic && count * rows.length >= 256 * detail::kFloatsPerRepeat) count /= 2;
  return count * tiling::detail::flash_row_floats(rows.length, dataTypeSize1, dataTypeSize2, basic) * 4;
}
inline uint32_t GetSoftMaxFlashV2MinTmpSize(const TensorShape& srcShape, const uint32_t dataTypeSize1,
                                            const uint32_t dataTypeSize2, const bool /*isUpdate*/,
                                            const bool isBasicBlock = false, const bool isFlashOutputBrc = false) {
  const detail::Rows rows(srcShape);
  if (rows.length == 0 || dataTypeSize1 == 0 || dataTypeSize2 == 0) return 0;
  const bool basic = isBasicBlock && rows.length % detail::kFloatsPerRepeat == 0;
  uint32_t count = basic ? 8 : 1;  // a piece is a group of rows there, or what fills a block with an element for each
  if (isFlashOutputBrc) count = std::min(detail::kRowBlockBytes / dataTypeSize1, rows.count);
  return count * tiling::detail::flash_row_floats(rows.length, dataTypeSize1, dataTypeSize2, basic) * 4;
}
template <typename Tiling>
void SoftMaxFlashV2TilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize1, const uint32_t dataTypeSize2,
                              const uint32_t localWorkSpaceSize, Tiling& softmaxFlashTiling, const bool /*isUpdate*/,
                              const bool isBasicBlock = false, const bool isFlashOutputBrc = false) {
  const detail::Rows rows(srcShape);
  detail::hand_over(tiling::detail::flash_tiling(rows.count, rows.length, dataTypeSize1, dataTypeSize2,
                                                 localWorkSpaceSize / 4, isBasicBlock, isFlashOutputBrc),
                    softmaxFlashTiling);
}

namespace detail {

// Floats of temporary memory for `rows` rows of RmsNorm: their squares (and half's values as floats), and the sums.
inline uint32_t rms_norm_floats(uint32_t rows, uint32_t length, uint32_t type_size) {
  const uint32_t sums = (rows + kFloatsPerBlock - 1) / kFloatsPerBlock * kFloatsPerBlock;
  return rows * length * (type_size == sizeof(float) ? 1 : 2) + sums;
}

// Whether shape[B, S, H] is one of basic blocks: H whole repeats below 2048, B * S whole groups of eight rows.
inline bool basic_block(const ge::Shape& shape) {
  const int64_t length = shape.GetDim(2);
  return length % kFloatsPerRepeat == 0 && length < 2048 && shape.GetDim(0) * shape.GetDim(1) % 8 == 0;
}

// Whether RmsNorm takes these shapes: three axes, the first two the same, whole blocks, at least one valid element.
inline bool rms_norm_shapes(const TensorShape& shape, const TensorShape& origin, uint32_t typeSize) {
  if (shape.GetDimNum() != 3 || origin.GetDimNum() != 3 || shape.GetShapeSize() <= 0) return false;
  const uint32_t length = Rows(shape).length, valid = static_cast<uint32_t>(origin.GetDim(2));
  const bool same = shape.GetDim(0) == origin.GetDim(0) && shape.GetDim(1) == origin.GetDim(1);
  return same && valid > 0 && valid <= length && length * typeSize % kRowBlockBytes == 0;
}

// Rows that a piece takes, for `floats` of temporary buffer.
inline uint32_t rms_norm_split(const Rows& rows, uint32_t floats, uint32_t typeSize, bool isBasicBlock) {
  uint32_t split = 1;
  while (split < rows.count && rms_norm_floats(split + 1, rows.length, typeSize) <= floats) split++;
  if (!isBasicBlock) return std::min(split, 255u);
  return split >= 8 ? split - split % 8 : split;
}

}  // namespace detail

inline bool GetRmsNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, uint32_t& maxValue,
                                    uint32_t& minValue, const bool isBasicBlock = false) {
  if (isBasicBlock && !detail::basic_block(srcShape)) return false;
  const detail::Rows rows(srcShape);
  const uint32_t block = detail::kRowBlockBytes / typeSize, sums = (rows.count + block - 1) / block * block;
  const uint32_t vectors = typeSize == sizeof(float) ? 1 : 2;
  maxValue = (rows.count * rows.length * vectors + sums) * uint32_t(sizeof(float));
  minValue = detail::rms_norm_floats(1, rows.length, typeSize) * uint32_t(sizeof(float));
  return true;
}

inline bool GetRmsNormTilingInfo(const TensorShape& srcShape, const TensorShape& originSrcShape,
                                 const uint32_t stackBufferByteSize, const uint32_t typeSize,
                                 api_tilings::RmsNormTiling& tiling, const bool isBasicBlock = false) {
  if (!detail::rms_norm_shapes(srcShape, originSrcShape, typeSize)) return false;
  if (isBasicBlock && !detail::basic_block(srcShape)) return false;
  const detail::Rows rows(srcShape);
  const uint32_t valid = static_cast<uint32_t>(originSrcShape.GetDim(2));
  const uint32_t floats = stackBufferByteSize / uint32_t(sizeof(float));
  if (floats < detail::rms_norm_floats(1, rows.length, typeSize)) return false;
  const uint32_t split = detail::rms_norm_split(rows, floats, typeSize, isBasicBlock);
  const uint32_t tail = rows.count % split;
  tiling.set_bLength(static_cast<uint32_t>(srcShape.GetDim(0)));
  tiling.set_sLength(static_cast<uint32_t>(srcShape.GetDim(1)));
  tiling.set_hLength(rows.length);
  tiling.set_originalHLength(valid);
  tiling.set_reciprocalOfHLength(1.0f / static_cast<float>(valid));
  tiling.set_mainBshLength(split * rows.length);
  tiling.set_mainBsLength(split);
  tiling.set_mainBsLengthAlign((split + 7) / 8 * 8);
  tiling.set_loopRound(rows.count / split);
  tiling.set_tailBshLength(tail * rows.length);
  tiling.set_inputTailPos((rows.count - tail) * rows.length);
  tiling.set_tailBsLength(tail);
  return true;
}

}  // namespace AscendC
