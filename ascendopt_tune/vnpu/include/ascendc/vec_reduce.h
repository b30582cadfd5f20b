// ReduceSum/Max/Min, WholeReduceSum/Max/Min, BlockReduceSum/Max/Min, PairReduceSum, RepeatReduceSum, their newer names
// ReduceRepeat, ReduceDataBlock and ReducePairElem, and the registers with the last result.
#pragma once
#include "vec_mask.h"
#include "vnpu/reduce.h"

namespace AscendC {

enum class ReduceType { NONE = -1, SUM = 0, MAX, MIN };

namespace detail {
ASCENDC_INLINE vnpu::Lanes reduce_lanes(int32_t mask, int32_t repeat, bool set_mask) {
  vnpu::Lanes l;
  l.repeat = repeat < 0 ? 0 : static_cast<uint32_t>(repeat);
  l.use_set_mask = !set_mask;
  l.mask[0] = mask >= 64 ? ~0ull : mask <= 0 ? 0 : (1ull << mask) - 1;
  l.mask[1] = mask <= 64 ? 0 : mask >= 128 ? ~0ull : (1ull << (mask - 64)) - 1;
  if (set_mask) check_lanes(mask < 0 ? 0 : static_cast<uint64_t>(mask));
  return l;
}
ASCENDC_INLINE vnpu::Lanes reduce_lanes(const uint64_t mask[], int32_t repeat, bool set_mask) {
  vnpu::Lanes l;
  l.repeat = repeat < 0 ? 0 : static_cast<uint32_t>(repeat);
  l.use_set_mask = !set_mask;
  if (set_mask) {
    l.mask[0] = mask[0];
    l.mask[1] = mask[1];
  }
  return l;
}
ASCENDC_INLINE vnpu::Lanes reduce_count(int32_t count, bool set_mask) {
  vnpu::Lanes l;
  l.count = static_cast<uint32_t>(count);
  l.use_set_mask = !set_mask;
  return l;
}
template <typename T>
ASCENDC_INLINE vnpu::Reduction reduction(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t dst_rep,
                                         int32_t src_blk, int32_t src_rep) {
  vnpu::Reduction r;
  r.dst = dst.pointer();
  r.src = src.pointer();
  r.dtype = vnpu::dtype_of<T>();
  r.dst_rep_stride = dst_rep;
  r.src_blk_stride = src_blk;
  r.src_rep_stride = src_rep;
  return r;
}
template <ReduceType type>
constexpr vnpu::ReduceOp reduce_op() {
  static_assert(type == ReduceType::SUM || type == ReduceType::MAX || type == ReduceType::MIN,
                "reduceType has to be SUM, MAX or MIN");
  return type == ReduceType::SUM   ? vnpu::ReduceOp::Sum
         : type == ReduceType::MAX ? vnpu::ReduceOp::Max
                                   : vnpu::ReduceOp::Min;
}
}  // namespace detail

// ---- one result per 32-byte block, per pair, per repeat ----

#define VNPU_REDUCE_BLOCKS(NAME, OP, MASK)                                                                         \
  template <typename T, bool isSetMask = true>                                                                     \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime, MASK,   \
                           const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride) {   \
    vnpu::reduce_blocks(vnpu::ReduceOp::OP, detail::reduction(dst, src, dstRepStride, srcBlkStride, srcRepStride), \
                        detail::reduce_lanes(mask, repeatTime, isSetMask), #NAME);                                 \
  }
#define VNPU_REDUCE_REPEATS(NAME, OP, MASK)                                                                         \
  template <typename T, bool isSetMask = true>                                                                      \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, MASK, const int32_t repeatTime,    \
                           const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,      \
                           ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {                                    \
    vnpu::reduce_repeats(vnpu::ReduceOp::OP, detail::reduction(dst, src, dstRepStride, srcBlkStride, srcRepStride), \
                         detail::reduce_lanes(mask, repeatTime, isSetMask), static_cast<vnpu::ReduceResult>(order), \
                         #NAME);                                                                                    \
  }
VNPU_REDUCE_BLOCKS(BlockReduceSum, Sum, const int32_t mask)
VNPU_REDUCE_BLOCKS(BlockReduceSum, Sum, const uint64_t mask[])
VNPU_REDUCE_BLOCKS(BlockReduceMax, Max, const int32_t mask)
VNPU_REDUCE_BLOCKS(BlockReduceMax, Max, const uint64_t mask[])
VNPU_REDUCE_BLOCKS(BlockReduceMin, Min, const int32_t mask)
VNPU_REDUCE_BLOCKS(BlockReduceMin, Min, const uint64_t mask[])
VNPU_REDUCE_REPEATS(WholeReduceMax, Max, const int32_t mask)
VNPU_REDUCE_REPEATS(WholeReduceMax, Max, const uint64_t mask[])
VNPU_REDUCE_REPEATS(WholeReduceMin, Min, const int32_t mask)
VNPU_REDUCE_REPEATS(WholeReduceMin, Min, const uint64_t mask[])
#undef VNPU_REDUCE_BLOCKS
#undef VNPU_REDUCE_REPEATS

#define VNPU_REDUCE_MASK(MASK)                                                                                         \
  template <typename T, bool isSetMask = true>                                                                         \
  ASCENDC_INLINE void PairReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,    \
                                    MASK, const int32_t dstRepStride, const int32_t srcBlkStride,                      \
                                    const int32_t srcRepStride) {                                                      \
    vnpu::reduce_pairs(detail::reduction(dst, src, dstRepStride, srcBlkStride, srcRepStride),                          \
                       detail::reduce_lanes(mask, repeatTime, isSetMask), "PairReduceSum");                            \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  ASCENDC_INLINE void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, MASK,                       \
                                     const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride, \
                                     const int32_t srcRepStride) {                                                     \
    vnpu::reduce_repeats(vnpu::ReduceOp::Sum, detail::reduction(dst, src, dstRepStride, srcBlkStride, srcRepStride),   \
                         detail::reduce_lanes(mask, repeatTime, isSetMask), vnpu::ReduceResult::OnlyValue,             \
                         "WholeReduceSum");                                                                            \
  }                                                                                                                    \
  template <ReduceType reduceType, typename T, typename U, bool isSetMask = true>                                      \
  ASCENDC_INLINE void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<U>& src, MASK,                      \
                                      const int32_t repeatTime, const int32_t dstRepStride,                            \
                                      const int32_t srcBlkStride, const int32_t srcRepStride) {                        \
    vnpu::reduce_blocks(detail::reduce_op<reduceType>(),                                                               \
                        detail::reduction<T>(dst, src, dstRepStride, srcBlkStride, srcRepStride),                      \
                        detail::reduce_lanes(mask, repeatTime, isSetMask), "ReduceDataBlock");                         \
  }                                                                                                                    \
  template <ReduceType reduceType, typename T, typename U, bool isSetMask = true>                                      \
  ASCENDC_INLINE void ReducePairElem(const LocalTensor<T>& dst, const LocalTensor<U>& src, MASK,                       \
                                     const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride, \
                                     const int32_t srcRepStride) {                                                     \
    static_assert(reduceType == ReduceType::SUM, "ReducePairElem sums only");                                          \
    vnpu::reduce_pairs(detail::reduction<T>(dst, src, dstRepStride, srcBlkStride, srcRepStride),                       \
                       detail::reduce_lanes(mask, repeatTime, isSetMask), "ReducePairElem");                           \
  }                                                                                                                    \
  template <ReduceType reduceType, typename T, typename U, bool isSetMask = true>                                      \
  ASCENDC_INLINE void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<U>& src, MASK,                         \
                                   const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,   \
                                   const int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {   \
    vnpu::reduce_repeats(                                                                                              \
        detail::reduce_op<reduceType>(), detail::reduction<T>(dst, src, dstRepStride, srcBlkStride, srcRepStride),     \
        detail::reduce_lanes(mask, repeatTime, isSetMask), static_cast<vnpu::ReduceResult>(order), "ReduceRepeat");    \
  }
VNPU_REDUCE_MASK(const int32_t mask)
VNPU_REDUCE_MASK(const uint64_t mask[])
#undef VNPU_REDUCE_MASK

// dstBlkStride has no effect on architecture 2201.
template <typename T, bool isSetMask = true>
ASCENDC_INLINE void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,
                                    const int32_t mask, const int32_t /*dstBlkStride*/, const int32_t srcBlkStride,
                                    const int32_t dstRepStride, const int32_t srcRepStride) {
  vnpu::reduce_repeats(vnpu::ReduceOp::Sum, detail::reduction(dst, src, dstRepStride, srcBlkStride, srcRepStride),
                       detail::reduce_lanes(mask, repeatTime, isSetMask), vnpu::ReduceResult::OnlyValue,
                       "RepeatReduceSum");
}

// ---- one result of everything ----

template <typename T, bool isSetMask = true>
ASCENDC_INLINE void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<T>& sharedTmpBuffer, const int32_t count) {
  if (count <= 0) return;
  vnpu::reduce_sum(detail::reduction(dst, src, 1, 1, 8), sharedTmpBuffer.pointer(),
                   detail::reduce_count(count, isSetMask), "ReduceSum");
}
#define VNPU_REDUCE_EXTREME(NAME, OP)                                                                               \
  template <typename T>                                                                                             \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                                    \
                           const LocalTensor<T>& sharedTmpBuffer, const int32_t count, bool calIndex = 0) {         \
    if (count <= 0) return;                                                                                         \
    vnpu::reduce_extreme(vnpu::ReduceOp::OP, detail::reduction(dst, src, 1, 1, 8), sharedTmpBuffer.pointer(),       \
                         detail::reduce_count(count, true), calIndex, #NAME);                                       \
  }                                                                                                                 \
  template <typename T>                                                                                             \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                                    \
                           const LocalTensor<T>& sharedTmpBuffer, const int32_t mask, const int32_t repeatTime,     \
                           const int32_t srcRepStride, bool calIndex = 0) {                                         \
    if (repeatTime <= 0) return;                                                                                    \
    vnpu::reduce_extreme(vnpu::ReduceOp::OP, detail::reduction(dst, src, 1, 1, srcRepStride),                       \
                         sharedTmpBuffer.pointer(), detail::reduce_lanes(mask, repeatTime, true), calIndex, #NAME); \
  }                                                                                                                 \
  template <typename T>                                                                                             \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                                    \
                           const LocalTensor<T>& sharedTmpBuffer, const uint64_t mask[], const int32_t repeatTime,  \
                           const int32_t srcRepStride, bool calIndex = 0) {                                         \
    if (repeatTime <= 0) return;                                                                                    \
    vnpu::reduce_extreme(vnpu::ReduceOp::OP, detail::reduction(dst, src, 1, 1, srcRepStride),                       \
                         sharedTmpBuffer.pointer(), detail::reduce_lanes(mask, repeatTime, true), calIndex, #NAME); \
  }
VNPU_REDUCE_EXTREME(ReduceMax, Max)
VNPU_REDUCE_EXTREME(ReduceMin, Min)
#undef VNPU_REDUCE_EXTREME

template <typename T>
ASCENDC_INLINE void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<T>& sharedTmpBuffer, const int32_t mask, const int32_t repeatTime,
                              const int32_t srcRepStride) {
  if (repeatTime <= 0) return;
  vnpu::reduce_sum(detail::reduction(dst, src, 1, 1, srcRepStride), sharedTmpBuffer.pointer(),
                   detail::reduce_lanes(mask, repeatTime, true), "ReduceSum");
}
template <typename T>
ASCENDC_INLINE void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<T>& sharedTmpBuffer, const uint64_t mask[], const int32_t repeatTime,
                              const int32_t srcRepStride) {
  if (repeatTime <= 0) return;
  vnpu::reduce_sum(detail::reduction(dst, src, 1, 1, srcRepStride), sharedTmpBuffer.pointer(),
                   detail::reduce_lanes(mask, repeatTime, true), "ReduceSum");
}

// ---- registers ----

namespace detail {
template <typename T>
ASCENDC_INLINE T from_bits(uint64_t bits) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "the register holds half or float");
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
}  // namespace detail

ASCENDC_INLINE int64_t GetAccVal() { return static_cast<int64_t>(vnpu::accumulator()); }
template <typename T>
ASCENDC_INLINE T GetAccVal() {
  return detail::from_bits<T>(vnpu::accumulator());
}
template <typename T>
ASCENDC_INLINE T GetReduceRepeatSumSpr() {
  return detail::from_bits<T>(vnpu::accumulator());
}
// The index keeps its integer bits in a T, as in memory.
template <typename T>
ASCENDC_INLINE void GetReduceRepeatMaxMinSpr(T& maxMinValue, T& maxMinIndex) {
  uint64_t bits = vnpu::extreme();
  maxMinValue = detail::from_bits<T>(bits);
  maxMinIndex = detail::from_bits<T>(bits >> 32);
}
template <typename T>
ASCENDC_INLINE void GetReduceMaxMinCount(T& maxMinValue, T& maxMinIndex) {
  GetReduceRepeatMaxMinSpr<T>(maxMinValue, maxMinIndex);
}
template <typename T>
ASCENDC_INLINE void GetReduceMaxMinCount(uint32_t& maxMinValue, uint32_t& maxMinIndex) {
  uint64_t bits = vnpu::extreme();
  maxMinValue = static_cast<uint32_t>(bits);
  maxMinIndex = static_cast<uint32_t>(bits >> 32);
}

}  // namespace AscendC

// ---- the instructions some kernels call directly ----

// One sum per repeat; with `accumulate` the sum of all repeats goes to the accumulator register and dst isn't used.
template <typename T>
ASCENDC_INLINE void vcadd(T* dst, T* src, uint8_t repeat, uint16_t dstRepStride, uint16_t srcBlkStride,
                          uint16_t srcRepStride, bool accumulate) {
  vnpu::Reduction r;
  r.dst = dst;
  r.src = src;
  r.dtype = vnpu::dtype_of<T>();
  r.dst_rep_stride = dstRepStride;
  r.src_blk_stride = srcBlkStride;
  r.src_rep_stride = srcRepStride;
  vnpu::Lanes lanes;
  lanes.repeat = repeat;
  lanes.use_set_mask = true;
  if (accumulate)
    vnpu::accumulate(r, lanes, "vcadd");
  else
    vnpu::reduce_repeats(vnpu::ReduceOp::Sum, r, lanes, vnpu::ReduceResult::OnlyValue, "vcadd");
}
// The accumulating form is also called with a null destination, which carries no type.
template <typename T>
ASCENDC_INLINE void vcadd(std::nullptr_t, T* src, uint8_t repeat, uint16_t dstRepStride, uint16_t srcBlkStride,
                          uint16_t srcRepStride, bool accumulate) {
  vcadd(static_cast<T*>(nullptr), src, repeat, dstRepStride, srcBlkStride, srcRepStride, accumulate);
}
ASCENDC_INLINE int64_t get_acc_val() { return static_cast<int64_t>(vnpu::accumulator()); }
ASCENDC_INLINE int64_t get_max_min_cnt() { return static_cast<int64_t>(vnpu::extreme()); }
