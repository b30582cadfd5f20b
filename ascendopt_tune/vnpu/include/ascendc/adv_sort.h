// TopK: the first k of each row with their indices, of the instructions that the reference says it is made of (Sort32,
// MrgSort, GatherMask). Where things lie in the temporary memory, and how much one instruction takes, is the tiling's.
#pragma once
#include "kernel_tiling/sort_tiling_data.h"
#include "kernel_utils.h"
#include "pipe.h"
#include "sync.h"
#include "vec_copy.h"
#include "vec_duplicate.h"
#include "vec_scalar.h"
#include "vec_sort.h"

namespace AscendC {

using tiling::TopkTiling;

struct TopKInfo {
  int32_t outter = 1, inner, n;
};
constexpr TopKConfig defaultTopKConfig = {TopKAlgo::MERGE_SORT, TopKOrder::UNSET, true};

namespace detail {

constexpr int32_t kSorted32 = 32;   // records that Sort32 leaves in order
constexpr uint32_t kRecord = 8;     // bytes of a record
constexpr int32_t kMostMerged = 4;  // lists that MrgSort takes

template <typename T>
constexpr int32_t record_elements = kRecord / sizeof(T);

struct TopKCall {
  int32_t k = 0;
  TopkTiling tiling;
  TopKInfo info{};
  bool largest = true;
};

template <typename T, bool small>
ASCENDC_INLINE void check_topk(const TopKCall& c) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "AscendC::TopK takes half and float");
  if (c.info.n < 1 || c.info.n > c.info.inner || c.k < 1 || c.k > c.info.n)
    vnpu::misuse("TopK", "1 <= k <= n <= inner has to hold (AscendC reference)");
  if (c.info.inner % kSorted32 != 0) vnpu::misuse("TopK", "inner is a multiple of 32 (AscendC reference)");
  if (small && c.info.inner != kSorted32) vnpu::misuse("TopK", "inner is 32 in Small mode (AscendC reference)");
  if (!small && c.info.inner > 4096) vnpu::misuse("TopK", "inner is at most 4096 in Normal mode (AscendC reference)");
}

// The scores of a row, its indices, and the two halves of the temporary memory, between which lists are merged.
template <typename T>
struct TopKRow {
  LocalTensor<T> scores;
  LocalTensor<uint32_t> indices;
  LocalTensor<T> halves[2];
};

// What MrgSort doesn't take, lists that are left over, has to lie in both halves.
template <typename T>
ASCENDC_INLINE void same_in_both(const LocalTensor<T>& to, const LocalTensor<T>& from, const TopkTiling& tiling) {
  DataCopy(to, from, DataCopyParams(1, static_cast<uint16_t>(tiling.copyUbToUbBlockCount), 0, 0));
  PipeBarrier<PIPE_V>();
}

// Lists of `length` to lists of four times that, as long as `inner` has four; the half where the result is.
template <typename T>
ASCENDC_INLINE int32_t merge_by_four(const TopKRow<T>& row, const TopKCall& c, int32_t& length) {
  int32_t at = 0;
  for (; length * kMostMerged <= c.info.inner; length *= kMostMerged, at ^= 1) {
    const LocalTensor<T>&from = row.halves[at], &to = row.halves[at ^ 1];
    const int32_t step = length * record_elements<T>;
    const auto n = static_cast<uint16_t>(length);
    const uint16_t lengths[kMostMerged] = {n, n, n, n};
    const auto groups = static_cast<uint16_t>(c.tiling.mrgSortRepeat / length);
    MrgSort(to, MrgSortSrcList<T>(from, from[step], from[2 * step], from[3 * step]),
            MrgSort4Info(lengths, false, 0b1111, groups));
    PipeBarrier<PIPE_V>();
    same_in_both(from, to, c.tiling);
  }
  return at;
}

// Lists of `length` and, behind them, of ever fewer: one after another to the one in front, of which k are enough.
template <typename T>
ASCENDC_INLINE int32_t merge_by_two(const TopKRow<T>& row, const TopKCall& c, int32_t length, int32_t at) {
  int32_t merged = length;  // records in front that are through
  while (merged < c.info.inner) {
    while (length > c.info.inner - merged) length /= kMostMerged;
    const LocalTensor<T>&from = row.halves[at], &to = row.halves[at ^ 1];
    const uint16_t lengths[kMostMerged] = {static_cast<uint16_t>(merged < c.k ? merged : c.k),
                                           static_cast<uint16_t>(length < c.k ? length : c.k), 0, 0};
    MrgSort(to, MrgSortSrcList<T>(from, from[merged * record_elements<T>], from, from),
            MrgSort4Info(lengths, false, 0b0011, 1));
    PipeBarrier<PIPE_V>();
    merged += length;
    at ^= 1;
  }
  return at;
}

// A row's records in order; the half where they are.
template <typename T>
ASCENDC_INLINE LocalTensor<T> sorted_row(const TopKRow<T>& row, const TopKCall& c) {
  LocalTensor<T> scores = row.scores;
  if (!c.largest) {
    Muls(row.halves[1], scores, static_cast<T>(-1), c.info.inner);
    PipeBarrier<PIPE_V>();
    scores = row.halves[1];
  }
  Sort32(row.halves[0], scores, row.indices, static_cast<int32_t>(c.tiling.sortRepeat));
  PipeBarrier<PIPE_V>();
  same_in_both(row.halves[1], row.halves[0], c.tiling);
  int32_t length = kSorted32;
  const int32_t at = merge_by_four(row, c, length);
  return row.halves[merge_by_two(row, c, length, at)];
}

// The first k of sorted records, scores and indices apart. The score is the first of a record's elements.
template <typename T>
ASCENDC_INLINE void take_first(const LocalTensor<T>& values, const LocalTensor<int32_t>& indices,
                               const LocalTensor<T>& sorted, int32_t k) {
  uint64_t kept = 0;
  GatherMask(values, sorted, static_cast<uint8_t>(sizeof(T) == 4 ? 1 : 3), true,
             static_cast<uint32_t>(k * record_elements<T>), {1, 1, 8, 1}, kept);
  PipeBarrier<PIPE_V>();
  GatherMask(indices, sorted.template ReinterpretCast<int32_t>(), static_cast<uint8_t>(2), true,
             static_cast<uint32_t>(k * record_elements<float>), {1, 1, 8, 1}, kept);
  PipeBarrier<PIPE_V>();
}

template <HardEvent event>
ASCENDC_INLINE void wait_between() {
  const auto id = GetTPipePtr()->FetchEventID(event);
  SetFlag<event>(id);
  WaitFlag<event>(id);
}

// Indices of a row that is not to count are n. The scalar unit asks behind what the vector unit waits for.
ASCENDC_INLINE void mark_finished(const LocalTensor<int32_t>& indices, const LocalTensor<bool>& finished, int32_t row,
                                  const TopKCall& c) {
  wait_between<HardEvent::V_S>();
  const bool done = finished.GetValue(row);
  wait_between<HardEvent::S_V>();
  if (done) Duplicate(indices, c.info.n, c.k);
  PipeBarrier<PIPE_V>();
}

template <typename T, bool isInitIndex, bool isHasfinish>
ASCENDC_INLINE void topk_normal(const LocalTensor<T>& values, const LocalTensor<int32_t>& indices,
                                const LocalTensor<T>& src, const LocalTensor<int32_t>& given,
                                const LocalTensor<bool>& finished, const LocalTensor<T>& work, const TopKCall& c) {
  LocalTensor<int32_t> numbers = given;
  if constexpr (!isInitIndex) {
    numbers = work[c.tiling.srcIndexOffset].template ReinterpretCast<int32_t>();
    ArithProgression(numbers, 0, 1, c.info.inner);
    PipeBarrier<PIPE_V>();
  }
  const int32_t pitch = sizeof(T) == 4 ? c.tiling.kAlignFourBytes : c.tiling.kAlignTwoBytes;
  for (int32_t r = 0; r < c.info.outter; r++) {
    const TopKRow<T> row{
        src[r * c.info.inner], numbers.template ReinterpretCast<uint32_t>(), {work, work[c.tiling.innerDataSize]}};
    const LocalTensor<int32_t> to = indices[r * c.tiling.kAlignFourBytes];
    take_first(values[r * pitch], to, sorted_row(row, c), c.k);
    if constexpr (isHasfinish) mark_finished(to, finished, r, c);
  }
}

// A pattern of GatherMask, bit `first` of each `width` bits of the first k records, 32 bits a word.
ASCENDC_INLINE void set_pattern(const LocalTensor<uint32_t>& pattern, int32_t first, int32_t width, int32_t k) {
  for (int32_t word = 0; word < kSorted32 * width / 32; word++) {
    uint32_t bits = 0;
    for (int32_t r = word * 32 / width; r < (word + 1) * 32 / width && r < k; r++)
      bits |= 1u << (r * width + first) % 32;
    pattern.SetValue(static_cast<uint32_t>(word), bits);
  }
}

// A row is a repeat: all of them are sorted, and taken of, by one instruction each.
template <typename T, bool isInitIndex>
ASCENDC_INLINE void topk_small(const LocalTensor<T>& values, const LocalTensor<int32_t>& indices,
                               const LocalTensor<T>& src, const LocalTensor<int32_t>& given, const LocalTensor<T>& work,
                               const TopKCall& c) {
  LocalTensor<int32_t> numbers = given;
  if constexpr (!isInitIndex) {
    numbers = work[c.tiling.topkNSmallSrcIndexOffset].template ReinterpretCast<int32_t>();
    ArithProgression(numbers, 0, 1, kSorted32);
    PipeBarrier<PIPE_V>();
    if (c.info.outter > 1) {
      Copy(numbers[kSorted32], numbers, uint64_t(kSorted32), static_cast<uint8_t>(c.info.outter - 1), {1, 1, 4, 0});
      PipeBarrier<PIPE_V>();
    }
  }
  LocalTensor<T> scores = src;
  if (!c.largest) {
    scores = work[c.tiling.innerDataSize];
    Muls(scores, src, static_cast<T>(-1), c.info.outter * kSorted32);
    PipeBarrier<PIPE_V>();
  }
  Sort32(work, scores, numbers.template ReinterpretCast<uint32_t>(), c.info.outter);
  PipeBarrier<PIPE_V>();
  const LocalTensor<uint32_t> of_values = work[c.tiling.topkMrgSrc1MaskSizeOffset].template ReinterpretCast<uint32_t>();
  const LocalTensor<uint32_t> of_indices = of_values[8];  // a block behind
  wait_between<HardEvent::V_S>();
  set_pattern(of_values, 0, record_elements<T>, c.k);
  set_pattern(of_indices, 1, record_elements<float>, c.k);
  wait_between<HardEvent::S_V>();
  const GatherMaskParams rows(1, static_cast<uint16_t>(c.info.outter), 8, 0);
  uint64_t kept = 0;
  using Pattern = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;
  GatherMask(values, work, of_values.template ReinterpretCast<Pattern>(), true,
             static_cast<uint32_t>(kSorted32 * record_elements<T>), rows, kept);
  PipeBarrier<PIPE_V>();
  GatherMask(indices, work.template ReinterpretCast<int32_t>(), of_indices, true,
             static_cast<uint32_t>(kSorted32 * record_elements<float>), rows, kept);
  PipeBarrier<PIPE_V>();
}

}  // namespace detail

template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          TopKMode topkMode = TopKMode::TOPK_NORMAL, const TopKConfig& config = defaultTopKConfig>
ASCENDC_INLINE void TopK(const LocalTensor<T>& dstValueLocal, const LocalTensor<int32_t>& dstIndexLocal,
                         const LocalTensor<T>& srcLocal, const LocalTensor<int32_t>& srcIndexLocal,
                         const LocalTensor<bool>& finishLocal, const LocalTensor<uint8_t>& tmpLocal, const int32_t k,
                         const TopkTiling& tilling, const TopKInfo& topKInfo, const bool isLargest = true) {
  constexpr bool small = topkMode == TopKMode::TOPK_NSMALL;
  static_assert(config.algo == TopKAlgo::MERGE_SORT && config.order == TopKOrder::UNSET && config.sorted,
                "AscendC::TopK: config is for Ascend 950 (AscendC reference)");
  static_assert(!small || !isHasfinish, "AscendC::TopK: isHasfinish is false in Small mode (AscendC reference)");
  const detail::TopKCall call{k, tilling, topKInfo, isLargest};
  detail::check_topk<T, small>(call);
  const LocalTensor<T> work = tmpLocal.template ReinterpretCast<T>();
  if constexpr (small)
    detail::topk_small<T, isInitIndex>(dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal, work, call);
  else
    detail::topk_normal<T, isInitIndex, isHasfinish>(dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal, finishLocal,
                                                     work, call);
  if (!isLargest) Muls(dstValueLocal, dstValueLocal, static_cast<T>(-1), tilling.maskOffset);
  SetMaskNorm();
  ResetMask();
}
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          TopKMode topkMode = TopKMode::TOPK_NORMAL, const TopKConfig& config = defaultTopKConfig>
ASCENDC_INLINE void TopK(const LocalTensor<T>& dstValueLocal, const LocalTensor<int32_t>& dstIndexLocal,
                         const LocalTensor<T>& srcLocal, const LocalTensor<int32_t>& srcIndexLocal,
                         const LocalTensor<bool>& finishLocal, const int32_t k, const TopkTiling& tilling,
                         const TopKInfo& topKInfo, const bool isLargest = true) {
  LocalTensor<uint8_t> rest;
  PopStackBuffer<uint8_t, TPosition::LCM>(rest);
  if (rest.GetSize() < uint64_t(tilling.tmpLocalSize) * sizeof(T))
    vnpu::misuse("TopK", "what is left of the Unified Buffer is smaller than the tiling's temporary memory");
  TopK<T, isInitIndex, isHasfinish, isReuseSrc, topkMode, config>(dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal,
                                                                  finishLocal, rest, k, tilling, topKInfo, isLargest);
}

}  // namespace AscendC
