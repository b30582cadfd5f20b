// DropOut: what a mask keeps, divided by the share that is kept (AscendC reference, data filtering), of the vector
// instructions that the reference says it is made of.
#pragma once
#include "kernel_utils.h"
#include "sync.h"
#include "vec_binary.h"
#include "vec_cast.h"
#include "vec_compare.h"
#include "vec_gather.h"
#include "vec_scalar.h"

namespace AscendC {

constexpr uint32_t DROPOUT_MODE_BYTE_MISALIGN = 1, DROPOUT_MODE_BYTE_ALIGN = 2, DROPOUT_MODE_BIT_ALIGN = 3,
                   DROPOUT_MODE_BIT_MISALIGN = 4;

// The last axis of the mask in bytes.
struct DropOutShapeInfo {
  uint32_t firstAxis = 0, srcLastAxis = 0, maskLastAxis = 0;
};

namespace detail {

// The mask's rows without what fills them up, `row_bytes` of each `stride_bytes`, where they were.
ASCENDC_INLINE void compact_mask(const LocalTensor<uint8_t>& mask, uint32_t rows, uint32_t row_bytes,
                                 uint32_t stride_bytes) {
  if (row_bytes % 2 != 0 || stride_bytes % 32 != 0)
    vnpu::misuse("DropOut", "a mask with gaps has an even number of bytes a row, and maskLastAxis is a multiple of 32");
  const LocalTensor<uint16_t> pairs = mask.template ReinterpretCast<uint16_t>();
  GatherMaskParams params;
  params.repeatTimes = static_cast<uint16_t>(rows);
  params.src0RepeatStride = static_cast<uint16_t>(stride_bytes / 32);
  uint64_t kept = 0;
  GatherMask(pairs, pairs, uint8_t(7), true, row_bytes / 2, params, kept);
  PipeBarrier<PIPE_V>();
}

// One bit for each element.
template <typename T>
ASCENDC_INLINE void drop_by_bits(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& mask,
                                 T factor, uint32_t count) {
  Select(dst, mask, src, static_cast<T>(0), SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
  PipeBarrier<PIPE_V>();
  Muls(dst, dst, factor, static_cast<int32_t>(count));
  PipeBarrier<PIPE_V>();
}

// One byte for each element, 0 or 1: converted to T in the temporary memory, as much at a time as that holds.
template <typename T>
ASCENDC_INLINE void drop_by_bytes(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                  const LocalTensor<uint8_t>& mask, const LocalTensor<uint8_t>& work, T factor,
                                  uint32_t count) {
  constexpr uint32_t width = sizeof(half) + (sizeof(T) > sizeof(half) ? sizeof(T) : 0);
  const uint32_t most = work.GetSize() / width / 32 * 32;
  if (most == 0) vnpu::misuse("DropOut", "sharedTmpBuffer is too small: 32 elements have to fit");
  const LocalTensor<half> halves = work.template ReinterpretCast<half>();
  for (uint32_t at = 0; at < count; at += most) {
    const uint32_t n = count - at < most ? count - at : most;
    const auto here = static_cast<int32_t>(n);
    Cast(halves, mask[at], RoundMode::CAST_NONE, n);
    PipeBarrier<PIPE_V>();
    if constexpr (sizeof(T) > sizeof(half)) {
      const LocalTensor<T> wide = work[most * sizeof(half)].template ReinterpretCast<T>();
      Cast(wide, halves, RoundMode::CAST_NONE, n);
      PipeBarrier<PIPE_V>();
      Mul(dst[at], wide, src[at], here);
    } else {
      Mul(dst[at], halves, src[at], here);
    }
    PipeBarrier<PIPE_V>();
    Muls(dst[at], dst[at], factor, here);
    PipeBarrier<PIPE_V>();
  }
}

constexpr uint32_t dropout_mode(uint32_t asked, const DropOutShapeInfo& info) {
  if (asked != 0) return asked;
  if (info.srcLastAxis < info.maskLastAxis) return DROPOUT_MODE_BYTE_MISALIGN;
  if (info.srcLastAxis == info.maskLastAxis) return DROPOUT_MODE_BYTE_ALIGN;
  return info.srcLastAxis == info.maskLastAxis * 8 ? DROPOUT_MODE_BIT_ALIGN : DROPOUT_MODE_BIT_MISALIGN;
}

}  // namespace detail

// Inner name: what DropOut with a mask of bits does to the registers before its first call, which kernels call
// themselves where isInitBitMode says that it is done (asc-devkit, dropout_membase_impl.h).
template <typename T>
ASCENDC_INLINE void DropOutBitModeInit(const LocalTensor<T>& sharedTmpBuffer) {
  ResetMask();
  const LocalTensor<int16_t> zeros = sharedTmpBuffer.template ReinterpretCast<int16_t>();
  Muls<int16_t, false>(zeros, zeros, int16_t(0), MASK_PLACEHOLDER, 1, UnaryRepeatParams());
  PipeBarrier<PIPE_V>();
  SetCmpMask<int16_t>(zeros);
  PipeBarrier<PIPE_V>();
}
ASCENDC_INLINE void DropOutBitModeInit() {
  LocalTensor<int16_t> rest;
  PopStackBuffer<int16_t, TPosition::LCM>(rest);
  DropOutBitModeInit(rest);
}

template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
ASCENDC_INLINE void DropOut(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                            const LocalTensor<uint8_t>& maskLocal, const LocalTensor<uint8_t>& sharedTmpBuffer,
                            const float keepProb, const DropOutShapeInfo& info) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "AscendC::DropOut takes half and float");
  static_assert(dropOutMode <= 4, "AscendC::DropOut: dropOutMode is 0 to 4");
  if (!(keepProb > 0 && keepProb < 1)) vnpu::misuse("DropOut", "keepProb lies between 0 and 1 (AscendC reference)");
  const uint32_t mode = detail::dropout_mode(dropOutMode, info), count = info.firstAxis * info.srcLastAxis;
  const T factor = static_cast<T>(1.0f / keepProb);
  const bool bits = mode >= DROPOUT_MODE_BIT_ALIGN;
  if (count == 0) return;
  if (mode == DROPOUT_MODE_BYTE_MISALIGN || mode == DROPOUT_MODE_BIT_MISALIGN)
    detail::compact_mask(maskLocal, info.firstAxis, info.srcLastAxis / (bits ? 8 : 1), info.maskLastAxis);
  if (bits)
    detail::drop_by_bits(dstLocal, srcLocal, maskLocal, factor, count);
  else
    detail::drop_by_bytes(dstLocal, srcLocal, maskLocal, sharedTmpBuffer, factor, count);
}
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
ASCENDC_INLINE void DropOut(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                            const LocalTensor<uint8_t>& maskLocal, const float keepProb, const DropOutShapeInfo& info) {
  LocalTensor<uint8_t> rest;
  PopStackBuffer<uint8_t, TPosition::LCM>(rest);
  DropOut<T, isInitBitMode, dropOutMode>(dstLocal, srcLocal, maskLocal, rest, keepProb, info);
}

}  // namespace AscendC
