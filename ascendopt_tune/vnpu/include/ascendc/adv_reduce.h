// High-level reductions beside those of adv_rows.h: ReduceMean, ReduceAny, ReduceAll along an axis, and ReduceXorSum.
// The instructions are those of CANN's own bodies (asc-devkit, reduce for architecture 2201).
#pragma once
#include "adv_rows.h"
#include "kernel_utils.h"
#include "sync.h"
#include "vec_binary.h"
#include "vec_cast.h"
#include "vec_mask.h"
#include "vec_reduce.h"
#include "vec_scalar.h"
#include "vec_unary.h"

namespace AscendC {

// ---- ReduceMean ----

namespace detail {
template <typename T, typename pattern, bool isReuseSource>
ASCENDC_INLINE void reduce_mean(const LocalTensor<T>& dst, const LocalTensor<T>& src, void* work,
                                const uint32_t shape[], bool inner_pad) {
  static_assert(std::is_same_v<T, float>, "ReduceMean takes float");
  constexpr bool rows = std::is_same_v<pattern, Pattern::Reduce::AR>;
  reduce_axis<T, pattern, isReuseSource>(vnpu::Fold::Sum, dst, src, work, shape, inner_pad, "ReduceMean");
  SetMaskCount();
  vnpu::set_mask(0, rows ? shape[0] : shape[1]);
  Muls<T, false>(dst, dst, 1.0f / static_cast<float>(static_cast<int32_t>(rows ? shape[1] : shape[0])),
                 MASK_PLACEHOLDER, 1, UnaryRepeatParams());
  PipeBarrier<PIPE_V>();
  SetMaskNorm();
  ResetMask();
}

// ---- ReduceAny, ReduceAll: of numbers that are 0 or 1 ----

template <bool any>
ASCENDC_INLINE void fold_onto(const LocalTensor<half>& x, const LocalTensor<half>& upper) {
  if constexpr (any)
    Max<half, false>(x, x, upper, MASK_PLACEHOLDER, 1, BinaryRepeatParams());
  else
    Min<half, false>(x, x, upper, MASK_PLACEHOLDER, 1, BinaryRepeatParams());
  PipeBarrier<PIPE_V>();
}
template <bool any>
ASCENDC_INLINE void fold_onto(const LocalTensor<int16_t>& to, const LocalTensor<int16_t>& x,
                              const LocalTensor<int16_t>& upper) {
  if constexpr (any)
    Or<int16_t, false>(to, x, upper, MASK_PLACEHOLDER, 1, BinaryRepeatParams());
  else
    And<int16_t, false>(to, x, upper, MASK_PLACEHOLDER, 1, BinaryRepeatParams());
  PipeBarrier<PIPE_V>();
}
constexpr uint32_t lower_power(uint32_t n) {
  uint32_t k = 1;
  while (2 * k <= n) k *= 2;
  return k;
}

// Blocks of half, the first `lanes` of each, onto a number each.
template <bool any>
ASCENDC_INLINE void fold_blocks(const LocalTensor<half>& dst, const LocalTensor<half>& src, uint32_t blocks,
                                uint32_t lanes) {
  for (uint32_t at = 0; at < blocks;) {
    const uint32_t left = blocks - at, repeats = left >= 8 ? (left / 8 < 255 ? left / 8 : 255) : 1;
    const uint32_t per_repeat = left >= 8 ? 8 : left;
    uint64_t mask[2] = {0, 0};
    for (uint32_t b = 0; b < per_repeat; b++) mask[b / 4] |= low_bits(lanes) << (b % 4 * 16);
    if constexpr (any)
      BlockReduceMax<half>(dst[at], src[at * 16], static_cast<int32_t>(repeats), mask, 1, 1, 8);
    else
      BlockReduceMin<half>(dst[at], src[at * 16], static_cast<int32_t>(repeats), mask, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    at += repeats * per_repeat;
  }
}

// Each row becomes half, is folded onto its first sixteen numbers, and those of all rows onto one each.
template <bool any>
ASCENDC_INLINE void fold_byte_rows(const LocalTensor<uint8_t>& dst, const LocalTensor<uint8_t>& src,
                                   const LocalTensor<uint8_t>& room, uint32_t rows, uint32_t columns, const char* api) {
  constexpr uint32_t first = 16;
  const uint32_t padded = (columns + 31) / 32 * 32, kept = columns < 32 ? 0 : lower_power(columns);
  if (columns > first && columns < 32)
    vnpu::unsupported(api, "of 17 to 31 columns of uint8_t CANN's own body takes the first 16 alone");
  if (room.GetSize() < (padded + rows * first) * sizeof(half)) vnpu::misuse(api, "sharedTmpBuffer is too small");
  const LocalTensor<half> work = room.ReinterpretCast<half>();
  SetMaskCount();
  for (uint32_t r = 0; r < rows; r++) {
    vnpu::set_mask(0, padded);
    Cast<half, uint8_t, false>(work, src[r * padded], RoundMode::CAST_NONE, MASK_PLACEHOLDER, 1,
                               UnaryRepeatParams(1, 1, 8, 4));
    PipeBarrier<PIPE_V>();
    if (kept > 0 && columns > kept) {
      vnpu::set_mask(0, columns - kept);
      fold_onto<any>(work, work[kept]);
    }
    for (uint32_t n = kept / 2; n >= first; n /= 2) {
      vnpu::set_mask(0, n);
      fold_onto<any>(work, work[n]);
    }
    vnpu::set_mask(0, first);
    Adds<half, false>(work[padded + r * first], work, static_cast<half>(0), MASK_PLACEHOLDER, 1, UnaryRepeatParams());
    PipeBarrier<PIPE_V>();
  }
  SetMaskNorm();
  ResetMask();
  fold_blocks<any>(work, work[padded], rows, columns < first ? columns : first);
  SetMaskCount();
  vnpu::set_mask(0, rows);
  Cast<uint8_t, half, false>(dst, work, RoundMode::CAST_NONE, MASK_PLACEHOLDER, 1, UnaryRepeatParams(1, 1, 4, 8));
  PipeBarrier<PIPE_V>();
}

// Rows onto each other, two bytes at a time.
template <bool any, bool reuse>
ASCENDC_INLINE void fold_byte_columns(const LocalTensor<uint8_t>& dst, const LocalTensor<uint8_t>& src,
                                      const LocalTensor<uint8_t>& room, uint32_t rows, uint32_t columns,
                                      const char* api) {
  const uint32_t padded = (columns + 31) / 32 * 16, pairs = (columns + 1) / 2;
  const LocalTensor<int16_t> to = dst.ReinterpretCast<int16_t>(), from = src.ReinterpretCast<int16_t>();
  LocalTensor<int16_t> work = reuse ? from : room.ReinterpretCast<int16_t>();
  uint32_t kept = lower_power(rows);
  const uint32_t more = rows - kept;
  const auto copy = [](const LocalTensor<int16_t>& a, const LocalTensor<int16_t>& b, uint32_t n) {
    vnpu::set_mask(0, n);
    Adds<int16_t, false>(a, b, static_cast<int16_t>(0), MASK_PLACEHOLDER, 1, UnaryRepeatParams());
    PipeBarrier<PIPE_V>();
  };
  const auto fold = [](const LocalTensor<int16_t>& a, const LocalTensor<int16_t>& b, const LocalTensor<int16_t>& c,
                       uint32_t n) {
    vnpu::set_mask(0, n);
    fold_onto<any>(a, b, c);
  };
  SetMaskCount();
  if (!reuse && rows == 1) return copy(to, from, pairs);
  if (!reuse && room.GetSize() < (more ? kept : kept / 2) * padded * 2)
    vnpu::misuse(api, "sharedTmpBuffer is too small");
  if (more != 0) {
    if (!reuse) copy(work, from, kept * padded);
    fold(work, work, from[kept * padded], more * padded);
  } else if (!reuse) {
    kept /= 2;
    fold(work, from, from[kept * padded], kept * padded);
  }
  for (; kept > 1; kept /= 2) fold(work, work, work[kept / 2 * padded], kept / 2 * padded);
  copy(to, work, pairs);
}

template <bool any, typename T, typename pattern, bool isReuseSource>
ASCENDC_INLINE void reduce_truth(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& room,
                                 const uint32_t shape[], bool inner_pad, const char* api) {
  constexpr bool rows = std::is_same_v<pattern, Pattern::Reduce::AR>;
  static_assert(rows || std::is_same_v<pattern, Pattern::Reduce::RA>, "pattern is AR or RA");
  if (!inner_pad) vnpu::misuse(api, "srcInnerPad has to be true on architecture 2201");
  if (shape[0] == 0 || shape[1] == 0) vnpu::misuse(api, "both axes of srcShape have to be at least 1");
  if constexpr (std::is_same_v<T, uint8_t>) {
    if constexpr (rows)
      fold_byte_rows<any>(dst, src, room, shape[0], shape[1], api);
    else
      fold_byte_columns<any, isReuseSource>(dst, src, room, shape[0], shape[1], api);
  } else {
    static_assert(std::is_same_v<T, float>, "ReduceAny and ReduceAll take float and uint8_t");
    reduce_axis<T, pattern, isReuseSource>(any ? vnpu::Fold::Max : vnpu::Fold::Min, dst, src, room.pointer(), shape,
                                           inner_pad, api);
  }
  SetMaskNorm();
  ResetMask();
}
ASCENDC_INLINE LocalTensor<uint8_t> temporary_rest() {
  LocalTensor<uint8_t> rest;
  PopStackBuffer<uint8_t, TPosition::LCM>(rest);
  return rest;
}
}  // namespace detail

template <class T, class pattern, bool isReuseSource = false>
ASCENDC_INLINE void ReduceMean(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                               const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t srcShape[],
                               bool srcInnerPad) {
  detail::reduce_mean<T, pattern, isReuseSource>(dstTensor, srcTensor, sharedTmpBuffer.pointer(), srcShape,
                                                 srcInnerPad);
}
template <class T, class pattern, bool isReuseSource = false>
ASCENDC_INLINE void ReduceMean(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                               const uint32_t srcShape[], bool srcInnerPad) {
  detail::reduce_mean<T, pattern, isReuseSource>(dstTensor, srcTensor, nullptr, srcShape, srcInnerPad);
}
#define VNPU_REDUCE_TRUTH(NAME, ANY)                                                                                   \
  template <class T, class pattern, bool isReuseSource = false>                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                           \
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t srcShape[], bool srcInnerPad) { \
    detail::reduce_truth<ANY, T, pattern, isReuseSource>(dstTensor, srcTensor, sharedTmpBuffer, srcShape, srcInnerPad, \
                                                         #NAME);                                                       \
  }                                                                                                                    \
  template <class T, class pattern, bool isReuseSource = false>                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                           \
                           const uint32_t srcShape[], bool srcInnerPad) {                                              \
    detail::reduce_truth<ANY, T, pattern, isReuseSource>(dstTensor, srcTensor, detail::temporary_rest(), srcShape,     \
                                                         srcInnerPad, #NAME);                                          \
  }
VNPU_REDUCE_TRUTH(ReduceAny, true)
VNPU_REDUCE_TRUTH(ReduceAll, false)
#undef VNPU_REDUCE_TRUTH

// ---- ReduceXorSum: the sum of src0 ^ src1, in float, as int16_t ----

template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void ReduceXorSum(LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                                 const LocalTensor<T>& src1Tensor, LocalTensor<uint8_t>& sharedTmpBuffer,
                                 const uint32_t calCount) {
  static_assert(std::is_same_v<T, int16_t>, "ReduceXorSum takes int16_t");
  constexpr uint32_t parts = isReuseSource ? 2 : 3;
  const uint32_t part = sharedTmpBuffer.GetSize() / sizeof(T) / parts / 32 * 32;
  if (part < calCount) vnpu::misuse("ReduceXorSum", "sharedTmpBuffer is too small (GetReduceXorSumMaxMinTmpSize)");
  const LocalTensor<T> a = sharedTmpBuffer.ReinterpretCast<T>(), b = a[part];
  const LocalTensor<T> c = isReuseSource ? src1Tensor : b[part];
  const LocalTensor<float> numbers = a.template ReinterpretCast<float>();
  SetMaskCount();
  vnpu::set_mask(0, calCount);
  And<T, false>(a, src0Tensor, src1Tensor, MASK_PLACEHOLDER, 1, BinaryRepeatParams());
  Or<T, false>(b, src0Tensor, src1Tensor, MASK_PLACEHOLDER, 1, BinaryRepeatParams());
  PipeBarrier<PIPE_V>();
  Not<T, false>(a, a, MASK_PLACEHOLDER, 1, UnaryRepeatParams());
  PipeBarrier<PIPE_V>();
  And<T, false>(b, a, b, MASK_PLACEHOLDER, 1, BinaryRepeatParams());
  PipeBarrier<PIPE_V>();
  Cast<float, T, false>(numbers, b, RoundMode::CAST_NONE, MASK_PLACEHOLDER, 1, UnaryRepeatParams(1, 1, 8, 4));
  PipeBarrier<PIPE_V>();
  SetMaskNorm();
  ResetMask();
  ReduceSum<float>(numbers, numbers, c.template ReinterpretCast<float>(), static_cast<int32_t>(calCount));
  PipeBarrier<PIPE_V>();
  SetMaskCount();
  vnpu::set_mask(0, 1);
  Cast<T, float, false>(dstTensor, numbers, RoundMode::CAST_ROUND, MASK_PLACEHOLDER, 1, UnaryRepeatParams(1, 1, 4, 8));
  PipeBarrier<PIPE_V>();
  SetMaskNorm();
  ResetMask();
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void ReduceXorSum(LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                                 const LocalTensor<T>& src1Tensor, const uint32_t calCount) {
  LocalTensor<uint8_t> rest = detail::temporary_rest();
  ReduceXorSum<T, isReuseSource>(dstTensor, src0Tensor, src1Tensor, rest, calCount);
}

}  // namespace AscendC
