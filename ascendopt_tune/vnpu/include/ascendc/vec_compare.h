// Compare, Compares (CompareScalar), Select, GetCmpMask, SetCmpMask, SelectWithBytesMask.
#pragma once
#include "vec_mask.h"
#include "vnpu/compare.h"

namespace AscendC {

namespace detail {
constexpr vnpu::CompareMode to_compare(CMPMODE m) { return static_cast<vnpu::CompareMode>(m); }
}  // namespace detail

template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                            CMPMODE cmpMode, const uint64_t mask[], uint8_t repeatTime, const BinaryRepeatParams& p) {
  vnpu::compare(dst.pointer(), src0.operand(p.src0BlkStride, p.src0RepStride),
                src1.operand(p.src1BlkStride, p.src1RepStride), detail::to_compare(cmpMode),
                detail::lanes_of(mask, repeatTime, isSetMask), "Compare");
}
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                            CMPMODE cmpMode, const uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams& p) {
  vnpu::compare(dst.pointer(), src0.operand(p.src0BlkStride, p.src0RepStride),
                src1.operand(p.src1BlkStride, p.src1RepStride), detail::to_compare(cmpMode),
                detail::lanes_of(mask, repeatTime, isSetMask), "Compare");
}
template <typename T, bool isSetMask = true>
ASCENDC_INLINE void Compare(const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
                            const uint64_t mask[], const BinaryRepeatParams& p) {
  vnpu::compare_to_register(src0.operand(p.src0BlkStride, p.src0RepStride),
                            src1.operand(p.src1BlkStride, p.src1RepStride), detail::to_compare(cmpMode),
                            detail::lanes_of(mask, 1, isSetMask));
}
template <typename T, bool isSetMask = true>
ASCENDC_INLINE void Compare(const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
                            const uint64_t mask, const BinaryRepeatParams& p) {
  vnpu::compare_to_register(src0.operand(p.src0BlkStride, p.src0RepStride),
                            src1.operand(p.src1BlkStride, p.src1RepStride), detail::to_compare(cmpMode),
                            detail::lanes_of(mask, 1, isSetMask));
}
template <typename T, typename U>
ASCENDC_INLINE void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                            CMPMODE cmpMode, uint32_t count) {
  if (count == 0) return;
  vnpu::compare(dst.pointer(), src0.operand(), src1.operand(), detail::to_compare(cmpMode),
                detail::lanes_of_count(count), "Compare");
}

template <typename T>
ASCENDC_INLINE void GetCmpMask(const LocalTensor<T>& dst) {
  vnpu::read_compare_mask(dst.pointer());
}
template <typename T>
ASCENDC_INLINE void SetCmpMask(const LocalTensor<T>& src) {
  vnpu::write_compare_mask(src.pointer());
}

// CompareScalar is the older name of Compares.
#define VNPU_COMPARES(NAME)                                                                                            \
  template <typename T, typename U, bool isSetMask = true>                                                             \
  ASCENDC_INLINE void NAME(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode, \
                           const uint64_t mask[], uint8_t repeatTime, const UnaryRepeatParams& p) {                    \
    vnpu::compare_scalar(dst.pointer(), src0.operand(p.srcBlkStride, p.srcRepStride), vnpu::to_scalar(src1Scalar),     \
                         detail::to_compare(cmpMode), detail::lanes_of(mask, repeatTime, isSetMask), #NAME);           \
  }                                                                                                                    \
  template <typename T, typename U, bool isSetMask = true>                                                             \
  ASCENDC_INLINE void NAME(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode, \
                           const uint64_t mask, uint8_t repeatTime, const UnaryRepeatParams& p) {                      \
    vnpu::compare_scalar(dst.pointer(), src0.operand(p.srcBlkStride, p.srcRepStride), vnpu::to_scalar(src1Scalar),     \
                         detail::to_compare(cmpMode), detail::lanes_of(mask, repeatTime, isSetMask), #NAME);           \
  }                                                                                                                    \
  template <typename T, typename U>                                                                                    \
  ASCENDC_INLINE void NAME(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode, \
                           uint32_t count) {                                                                           \
    if (count == 0) return;                                                                                            \
    vnpu::compare_scalar(dst.pointer(), src0.operand(), vnpu::to_scalar(src1Scalar), detail::to_compare(cmpMode),      \
                         detail::lanes_of_count(count), #NAME);                                                        \
  }
VNPU_COMPARES(Compares)
VNPU_COMPARES(CompareScalar)
#undef VNPU_COMPARES

namespace detail {
// Modes 0 (the first 256 / sizeof(T) bits serve every repeat, through the compare mask register) and 2 (two tensors).
// What the device does first to the compare mask register is ordered before and behind by barriers, and the count form
// ends with one (dav_c220, kernel_operator_vec_cmpsel_impl.h).
template <typename T, typename U>
ASCENDC_INLINE void select_tensors(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                                   const LocalTensor<T>& src1, SELMODE mode, const vnpu::Lanes& lanes,
                                   const BinaryRepeatParams& p) {
  if (mode == SELMODE::VSEL_TENSOR_SCALAR_MODE)
    vnpu::misuse("Select", "VSEL_TENSOR_SCALAR_MODE takes a scalar as its second source");
  const bool in_register = mode == SELMODE::VSEL_CMPMASK_SPR;
  if (in_register) {
    vnpu::write_compare_mask(selMask.pointer());
    vnpu::barrier(vnpu::Pipe::V);
  } else {
    vnpu::prepare_select(selMask.pointer(), lanes);
  }
  vnpu::select(dst.operand(p.dstBlkStride, p.dstRepStride), in_register ? nullptr : selMask.pointer(),
               src0.operand(p.src0BlkStride, p.src0RepStride), src1.operand(p.src1BlkStride, p.src1RepStride), lanes);
  if (lanes.count && lanes.repeat == 0) vnpu::barrier(vnpu::Pipe::V);
}
template <typename T, typename U>
ASCENDC_INLINE void select_scalar(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                                  T src1, SELMODE mode, const vnpu::Lanes& lanes, const BinaryRepeatParams& p) {
  if (mode != SELMODE::VSEL_TENSOR_SCALAR_MODE)
    vnpu::misuse("Select", "a scalar as the second source needs VSEL_TENSOR_SCALAR_MODE");
  vnpu::prepare_select_scalar(vnpu::to_scalar(src1), vnpu::dtype_of<T>(), lanes);
  vnpu::select_scalar(dst.operand(p.dstBlkStride, p.dstRepStride), selMask.pointer(),
                      src0.operand(p.src0BlkStride, p.src0RepStride), vnpu::to_scalar(src1), lanes);
}
}  // namespace detail

// The mask is set whatever isSetMask says, which the reference keeps in reserve.
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                           const LocalTensor<T>& src1, SELMODE selMode, uint64_t mask[], uint8_t repeatTime,
                           const BinaryRepeatParams& repeatParams) {
  detail::select_tensors(dst, selMask, src0, src1, selMode, detail::lanes_of(mask, repeatTime, true), repeatParams);
}
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                           const LocalTensor<T>& src1, SELMODE selMode, uint64_t mask, uint8_t repeatTime,
                           const BinaryRepeatParams& repeatParams) {
  detail::select_tensors(dst, selMask, src0, src1, selMode, detail::lanes_of(mask, repeatTime, true), repeatParams);
}
template <typename T, typename U>
ASCENDC_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                           const LocalTensor<T>& src1, SELMODE selMode, uint32_t count) {
  if (count == 0) return;
  detail::select_tensors(dst, selMask, src0, src1, selMode, detail::lanes_of_count(count), BinaryRepeatParams());
}
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
                           SELMODE selMode, uint64_t mask[], uint8_t repeatTime,
                           const BinaryRepeatParams& repeatParams) {
  detail::select_scalar(dst, selMask, src0, src1, selMode, detail::lanes_of(mask, repeatTime, true), repeatParams);
}
template <typename T, typename U, bool isSetMask = true>
ASCENDC_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
                           SELMODE selMode, uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams& repeatParams) {
  detail::select_scalar(dst, selMask, src0, src1, selMode, detail::lanes_of(mask, repeatTime, true), repeatParams);
}
template <typename T, typename U>
ASCENDC_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
                           SELMODE selMode, uint32_t count) {
  if (count == 0) return;
  detail::select_scalar(dst, selMask, src0, src1, selMode, detail::lanes_of_count(count), BinaryRepeatParams());
}
// Without mask operands: the vector mask and the compare mask are the registers as they are.
template <typename T, SELMODE selMode>
ASCENDC_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                           uint8_t repeatTime, const BinaryRepeatParams& p) {
  static_assert(selMode == SELMODE::VSEL_CMPMASK_SPR,
                "Select without a mask tensor: only VSEL_CMPMASK_SPR is covered (see include/ascendc/vec_compare.h)");
  vnpu::select(dst.operand(p.dstBlkStride, p.dstRepStride), nullptr, src0.operand(p.src0BlkStride, p.src0RepStride),
               src1.operand(p.src1BlkStride, p.src1RepStride), detail::lanes_of(uint64_t{0}, repeatTime, false));
}
template <typename T, typename U>
ASCENDC_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                           uint8_t repeatTime, const BinaryRepeatParams& p) {
  vnpu::select_register(dst.operand(p.dstBlkStride, p.dstRepStride), selMask.pointer(),
                        src0.operand(p.src0BlkStride, p.src0RepStride),
                        detail::lanes_of(uint64_t{0}, repeatTime, false));
}

// SelectWithBytesMask: masks of one element per element.
struct SelectWithBytesMaskShapeInfo {
  SelectWithBytesMaskShapeInfo() = default;
  SelectWithBytesMaskShapeInfo(uint32_t first, uint32_t srcLast, uint32_t maskLast)
      : firstAxis(first), srcLastAxis(srcLast), maskLastAxis(maskLast) {}
  uint32_t firstAxis = 0, srcLastAxis = 0, maskLastAxis = 0;
};

namespace detail {
template <typename T, typename U>
ASCENDC_INLINE void select_bytes(const LocalTensor<T>& dst, const LocalTensor<T>& src, T scalar,
                                 const LocalTensor<U>& mask, const LocalTensor<uint8_t>& shared,
                                 const SelectWithBytesMaskShapeInfo& info, bool scalar_where_zero) {
  vnpu::select_bytes(dst.operand(), src.operand(), vnpu::to_scalar(scalar),
                     {mask.pointer(), vnpu::dtype_of<U>(), info.firstAxis, info.srcLastAxis, info.maskLastAxis,
                      scalar_where_zero, shared.pointer(), shared.GetSize()});
}
}  // namespace detail

#define VNPU_SELECT_BYTES(NAME)                                                                                       \
  template <typename T, typename U, bool isReuseMask = true>                                                          \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, T src1, const LocalTensor<U>& mask, \
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const SelectWithBytesMaskShapeInfo& info) {   \
    detail::select_bytes(dst, src0, src1, mask, sharedTmpBuffer, info, false);                                        \
  }                                                                                                                   \
  template <typename T, typename U, bool isReuseMask = true>                                                          \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, T src0, const LocalTensor<T>& src1, const LocalTensor<U>& mask, \
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const SelectWithBytesMaskShapeInfo& info) {   \
    detail::select_bytes(dst, src1, src0, mask, sharedTmpBuffer, info, true);                                         \
  }
VNPU_SELECT_BYTES(Select)
VNPU_SELECT_BYTES(SelectWithBytesMask)
#undef VNPU_SELECT_BYTES

}  // namespace AscendC
