// Gather, Gatherb, GatherMask. (Scatter doesn't exist on architecture 2201.)
#pragma once
#include "vec_mask.h"
#include "vnpu/gather.h"

namespace AscendC {

struct GatherRepeatParams {
  GatherRepeatParams() = default;
  GatherRepeatParams(const uint8_t dstBlk, const uint8_t dstRep) : dstRepStride(dstRep), dstBlkStride(dstBlk) {}
  uint32_t blockNumber = DEFAULT_BLK_NUM;
  uint16_t dstRepStride = DEFAULT_REPEAT_STRIDE;
  uint8_t dstBlkStride = DEFAULT_BLK_STRIDE;
  uint8_t src0BlkStride = DEFAULT_BLK_STRIDE, src1BlkStride = DEFAULT_BLK_STRIDE;
  uint8_t src0RepStride = DEFAULT_REPEAT_STRIDE, src1RepStride = DEFAULT_REPEAT_STRIDE;
  bool repeatStrideMode = false, strideSizeMode = false;
};
enum class GatherMaskMode : uint8_t { VERSION_V1 = 0, VERSION_V2 = 1 };
constexpr GatherMaskMode defaultGatherMaskMode = GatherMaskMode::VERSION_V2;
constexpr GatherMaskMode defaultGahterMaskMode = defaultGatherMaskMode;
struct GatherMaskParams {
  GatherMaskParams() = default;
  GatherMaskParams(const uint8_t src0Blk, const uint16_t repeats, const uint16_t src0Rep, const uint8_t src1Rep)
      : src0BlockStride(src0Blk), repeatTimes(repeats), src0RepeatStride(src0Rep), src1RepeatStride(src1Rep) {}
  uint8_t src0BlockStride = DEFAULT_BLK_STRIDE;
  uint16_t repeatTimes = 0;
  uint16_t src0RepeatStride = DEFAULT_REPEAT_STRIDE;
  uint8_t src1RepeatStride = DEFAULT_REPEAT_STRIDE;
};

// Offsets and the base are bytes.
template <typename T>
ASCENDC_INLINE void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
                           const uint32_t srcBaseOffset, const uint32_t count) {
  if (count == 0) return;
  vnpu::gather(dst.operand(), src.pointer(), srcOffset.pointer(), srcBaseOffset, detail::lanes_of_count(count));
}
template <typename T>
ASCENDC_INLINE void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
                           const uint32_t srcBaseOffset, const uint64_t mask, const uint8_t repeatTime,
                           const uint16_t dstRepStride) {
  vnpu::gather(dst.operand(1, dstRepStride), src.pointer(), srcOffset.pointer(), srcBaseOffset,
               detail::lanes_of(mask, repeatTime, true));
}
template <typename T>
ASCENDC_INLINE void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
                           const uint32_t srcBaseOffset, const uint64_t mask[], const uint8_t repeatTime,
                           const uint16_t dstRepStride) {
  vnpu::gather(dst.operand(1, dstRepStride), src.pointer(), srcOffset.pointer(), srcBaseOffset,
               detail::lanes_of(mask, repeatTime, true));
}
template <typename T>
ASCENDC_INLINE void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& offset,
                            const uint8_t repeatTime, const GatherRepeatParams& repeatParams) {
  vnpu::gather_blocks(dst.operand(repeatParams.dstBlkStride, repeatParams.dstRepStride), src.pointer(),
                      offset.pointer(), repeatTime);
}

namespace detail {
template <typename T>
ASCENDC_INLINE vnpu::GatherMaskCall gather_mask_call(const LocalTensor<T>& dst, const LocalTensor<T>& src, bool counter,
                                                     uint32_t mask, const GatherMaskParams& p) {
  vnpu::GatherMaskCall c;
  c.dst = dst.pointer();
  c.src = src.pointer();
  c.dtype = vnpu::dtype_of<T>();
  c.counter = counter;
  c.count = mask;
  c.repeat = p.repeatTimes;
  c.src_blk_stride = p.src0BlockStride;
  c.src_rep_stride = p.src0RepeatStride;
  c.pattern_rep_stride = p.src1RepeatStride;
  return c;
}
}  // namespace detail

template <typename T, typename U, GatherMaskMode mode = defaultGatherMaskMode>
ASCENDC_INLINE void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<U>& src1Pattern,
                               const bool reduceMode, const uint32_t mask, const GatherMaskParams& gatherMaskParams,
                               uint64_t& rsvdCnt) {
  static_assert(std::is_same_v<U, uint16_t> || std::is_same_v<U, uint32_t>,
                "GatherMask: src1Pattern is a tensor of uint16_t (for 16-bit data) or uint32_t (for 32-bit data)");
  // No static_assert: kernels compile calls for types they never run with.
  if constexpr (sizeof(T) != sizeof(U)) vnpu::misuse("GatherMask", "src1Pattern needs elements as wide as the data's");
  vnpu::GatherMaskCall c = detail::gather_mask_call(dst, src0, reduceMode, mask, gatherMaskParams);
  c.pattern = src1Pattern.pointer();
  rsvdCnt = vnpu::gather_mask(c);
}
template <typename T, GatherMaskMode mode = defaultGatherMaskMode>
ASCENDC_INLINE void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const uint8_t src1Pattern,
                               const bool reduceMode, const uint32_t mask, const GatherMaskParams& gatherMaskParams,
                               uint64_t& rsvdCnt) {
  vnpu::GatherMaskCall c = detail::gather_mask_call(dst, src0, reduceMode, mask, gatherMaskParams);
  c.fixed = src1Pattern;
  rsvdCnt = vnpu::gather_mask(c);
}

}  // namespace AscendC
