// High-level API AscendQuant to int8_t, with one scale for all or one for each column. The instructions are those of
// CANN's own body (asc-devkit, quant for architecture 2201): numbers become half, whatever they were, are scaled and
// moved, and become int8_t to nearest; in pieces that the temporary buffer holds.
#pragma once
#include "adv_quant.h"
#include "kernel_utils.h"
#include "sync.h"
#include "vec_binary.h"
#include "vec_cast.h"
#include "vec_mask.h"
#include "vec_scalar.h"

namespace AscendC {

struct AscendQuantConfig {
  constexpr AscendQuantConfig(const uint32_t count, const uint32_t offsets, const uint32_t scales, const uint32_t bytes)
      : calcCount(count), offsetCount(offsets), scaleCount(scales), workLocalSize(bytes) {}
  uint32_t calcCount = 0;
  uint32_t offsetCount = 0;
  uint32_t scaleCount = 0;
  uint32_t workLocalSize = 0;
};
constexpr AscendQuantConfig ASCEND_QUANT_DEFAULT_CFG = {0, 0, 0, 0};

namespace detail {

// What is behind a scale or an offset: one number, or one for each column from a tensor on.
template <typename P>
ASCENDC_INLINE half at_column(const P& one, uint32_t) {
  return one;
}
ASCENDC_INLINE LocalTensor<half> at_column(const LocalTensor<half>& all, uint32_t first) { return all[first]; }
ASCENDC_INLINE void scale_by(const LocalTensor<half>& to, const LocalTensor<half>& from, half scale) {
  Muls<half, false>(to, from, scale, MASK_PLACEHOLDER, 1, UnaryRepeatParams());
}
ASCENDC_INLINE void scale_by(const LocalTensor<half>& to, const LocalTensor<half>& from,
                             const LocalTensor<half>& scale) {
  Mul<half, false>(to, from, scale, MASK_PLACEHOLDER, 1, BinaryRepeatParams());
}
ASCENDC_INLINE void move_by(const LocalTensor<half>& x, half offset) {
  Adds<half, false>(x, x, offset, MASK_PLACEHOLDER, 1, UnaryRepeatParams());
}
ASCENDC_INLINE void move_by(const LocalTensor<half>& x, const LocalTensor<half>& offset) {
  Add<half, false>(x, x, offset, MASK_PLACEHOLDER, 1, BinaryRepeatParams());
}

template <typename T, typename S, typename O>
ASCENDC_INLINE void quantize_piece(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                                   const LocalTensor<half>& room, const S& scale, const O& offset) {
  constexpr bool is_float = std::is_same_v<T, float>;
  const UnaryRepeatParams halved(1, 1, 4, 8);
  if constexpr (is_float) {
    Cast<half, float, false>(room, src, RoundMode::CAST_NONE, MASK_PLACEHOLDER, 1, halved);
    PipeBarrier<PIPE_V>();
    scale_by(room, room, scale);
  } else {
    scale_by(room, src, scale);
  }
  PipeBarrier<PIPE_V>();
  move_by(room, offset);
  PipeBarrier<PIPE_V>();
  Cast<int8_t, half, false>(dst, room, RoundMode::CAST_NONE, MASK_PLACEHOLDER, 1, halved);
  PipeBarrier<PIPE_V>();
}

// `count` numbers, columns from the first on.
template <typename T, typename S, typename O>
ASCENDC_INLINE void quantize_row(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                                 const LocalTensor<half>& room, uint32_t piece, uint32_t count, const S& scale,
                                 const O& offset) {
  if (count >= piece) vnpu::set_mask(0, piece);
  for (uint32_t at = 0; at < count; at += piece) {
    if (count - at < piece) vnpu::set_mask(0, count - at);
    quantize_piece(dst[at], src[at], room, at_column(scale, at), at_column(offset, at));
  }
}

// Where one row of scales serves many, floats of it become half where they lie: the kernel's tensor is changed.
template <typename T>
ASCENDC_INLINE LocalTensor<half> as_half(const LocalTensor<T>& numbers) {
  if constexpr (std::is_same_v<T, float>) {
    const LocalTensor<half> to = numbers.template ReinterpretCast<half>();
    Cast<half, float, false>(to, numbers, RoundMode::CAST_NONE, MASK_PLACEHOLDER, 1, UnaryRepeatParams(1, 1, 4, 8));
    return to;
  } else {
    return numbers;
  }
}
template <typename T>
ASCENDC_INLINE half as_half(T number) {
  return static_cast<half>(number);
}

// Rows of `scales` columns, each with a scale of its own.
template <typename T, typename O>
ASCENDC_INLINE void quantize_columns(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                                     const LocalTensor<half>& room, uint32_t piece, const LocalTensor<T>& scale,
                                     const O& offset, uint32_t scales, uint32_t count) {
  if (scales == 0 || count == 0 || count % scales != 0 || scales % 32 != 0)
    vnpu::misuse("AscendQuant", "calCount has to be a multiple of scaleCount, and that of 32");
  if (scales > scale.GetSize()) vnpu::misuse("AscendQuant", "scaleCount is more than scaleTensor has");
  vnpu::set_mask(0, scales);
  const LocalTensor<half> halves = as_half(scale);
  const auto moved = as_half(offset);
  if constexpr (std::is_same_v<T, float>) PipeBarrier<PIPE_V>();
  for (uint32_t at = 0; at < count; at += scales) quantize_row(dst[at], src[at], room, piece, scales, halves, moved);
}

// How many numbers a piece has that fits the temporary buffer.
template <typename T>
ASCENDC_INLINE uint32_t quantized_at_once(const LocalTensor<T>& src, const LocalTensor<uint8_t>& room, uint32_t count,
                                          uint32_t bytes) {
  if (bytes > room.GetSize()) vnpu::misuse("AscendQuant", "workLocalSize is more than sharedTmpBuffer has");
  if (count > src.GetSize()) vnpu::misuse("AscendQuant", "calCount is more than srcTensor has");
  const uint32_t piece = bytes / static_cast<uint32_t>(sizeof(half)) / 32 * 32;
  if (piece == 0) vnpu::misuse("AscendQuant", "sharedTmpBuffer has to hold 32 halves at least");
  return piece;
}

template <const AscendQuantConfig& config, typename T, typename S, typename O>
ASCENDC_INLINE void ascend_quant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                                 const LocalTensor<uint8_t>& room, const S& scale, const O& offset, uint32_t scales,
                                 uint32_t count) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "AscendQuant takes half and float");
  constexpr bool by_column = !std::is_same_v<S, float>;
  constexpr bool sized = config.calcCount != 0, columns_sized = sized && config.scaleCount != 0;
  if (vnpu::local_bytes() == 0) return;  // a cube core
  if constexpr (by_column ? columns_sized : sized) count = config.calcCount;
  if constexpr (columns_sized) scales = config.scaleCount;
  const uint32_t bytes = config.workLocalSize != 0 && sized ? config.workLocalSize : room.GetSize();
  const uint32_t piece = quantized_at_once(src, room, count, bytes);
  SetMaskCount();
  const LocalTensor<half> work = room.ReinterpretCast<half>();
  if constexpr (by_column)
    quantize_columns(dst, src, work, piece, scale, offset, scales, count);
  else
    quantize_row(dst, src, work, piece, count, static_cast<half>(scale), static_cast<half>(offset));
  SetMaskNorm();
  ResetMask();
}
ASCENDC_INLINE LocalTensor<uint8_t> rest_of_memory() {
  LocalTensor<uint8_t> rest;
  PopStackBuffer<uint8_t, TPosition::LCM>(rest);
  return rest;
}

}  // namespace detail

// One scale for all.
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<uint8_t>& sharedTmpBuffer, const float scale, const float offset,
                                const uint32_t calCount) {
  detail::ascend_quant<config>(dstTensor, srcTensor, sharedTmpBuffer, scale, offset, 0, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<uint8_t>& sharedTmpBuffer, const float scale, const float offset) {
  detail::ascend_quant<config>(dstTensor, srcTensor, sharedTmpBuffer, scale, offset, 0, srcTensor.GetSize());
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const float scale, const float offset, const uint32_t calCount) {
  detail::ascend_quant<config>(dstTensor, srcTensor, detail::rest_of_memory(), scale, offset, 0, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const float scale, const float offset) {
  detail::ascend_quant<config>(dstTensor, srcTensor, detail::rest_of_memory(), scale, offset, 0, srcTensor.GetSize());
}

// A scale for each column, and one offset.
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<uint8_t>& sharedTmpBuffer, const LocalTensor<T>& scaleTensor,
                                const T offset, const uint32_t scaleCount, const uint32_t calCount) {
  detail::ascend_quant<config>(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, offset, scaleCount, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<uint8_t>& sharedTmpBuffer, const LocalTensor<T>& scaleTensor,
                                const T offset) {
  detail::ascend_quant<config>(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, offset, scaleTensor.GetSize(),
                               srcTensor.GetSize());
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<T>& scaleTensor, const T offset, const uint32_t scaleCount,
                                const uint32_t calCount) {
  detail::ascend_quant<config>(dstTensor, srcTensor, detail::rest_of_memory(), scaleTensor, offset, scaleCount,
                               calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<T>& scaleTensor, const T offset) {
  detail::ascend_quant<config>(dstTensor, srcTensor, detail::rest_of_memory(), scaleTensor, offset,
                               scaleTensor.GetSize(), srcTensor.GetSize());
}

// A scale and an offset for each column.
namespace detail {
template <const AscendQuantConfig& config, typename T>
ASCENDC_INLINE void quant_columns(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                                  const LocalTensor<uint8_t>& room, const LocalTensor<T>& scale,
                                  const LocalTensor<T>& offset, uint32_t scales, uint32_t offsets, uint32_t count) {
  if (scales != offsets) vnpu::misuse("AscendQuant", "scaleCount and offsetCount have to be the same");
  if (offsets > offset.GetSize()) vnpu::misuse("AscendQuant", "offsetCount is more than offsetTensor has");
  ascend_quant<config>(dst, src, room, scale, offset, scales, count);
}
}  // namespace detail
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<uint8_t>& sharedTmpBuffer, const LocalTensor<T>& scaleTensor,
                                const LocalTensor<T>& offsetTensor, const uint32_t scaleCount,
                                const uint32_t offsetCount, const uint32_t calCount) {
  detail::quant_columns<config>(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, offsetTensor, scaleCount,
                                offsetCount, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<uint8_t>& sharedTmpBuffer, const LocalTensor<T>& scaleTensor,
                                const LocalTensor<T>& offsetTensor) {
  detail::quant_columns<config>(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, offsetTensor, scaleTensor.GetSize(),
                                offsetTensor.GetSize(), srcTensor.GetSize());
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor,
                                const uint32_t scaleCount, const uint32_t offsetCount, const uint32_t calCount) {
  detail::quant_columns<config>(dstTensor, srcTensor, detail::rest_of_memory(), scaleTensor, offsetTensor, scaleCount,
                                offsetCount, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
ASCENDC_INLINE void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                                const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor) {
  detail::quant_columns<config>(dstTensor, srcTensor, detail::rest_of_memory(), scaleTensor, offsetTensor,
                                scaleTensor.GetSize(), offsetTensor.GetSize(), srcTensor.GetSize());
}

}  // namespace AscendC
