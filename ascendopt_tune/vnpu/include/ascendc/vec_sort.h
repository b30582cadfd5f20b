// Sort32, MrgSort, Concat, Sort, Extract and the sizes of sorted data. (RpSort16, MrgSort4, ProposalConcat and
// ProposalExtract don't exist on architecture 2201.)
#pragma once
#include "vec_gather.h"
#include "vnpu/sort.h"

namespace AscendC {

constexpr int32_t MRG_SORT_ELEMENT_LEN = 4;

struct MrgSort4Info {
  MrgSort4Info() = default;
  MrgSort4Info(const uint16_t lengths[MRG_SORT_ELEMENT_LEN], const bool suspend, const uint16_t valid,
               const uint16_t repeats)
      : ifExhaustedSuspension(suspend), validBit(valid), repeatTimes(static_cast<uint8_t>(repeats)) {
    for (int32_t i = 0; i < MRG_SORT_ELEMENT_LEN; i++) elementLengths[i] = lengths[i];
  }
  uint16_t elementLengths[MRG_SORT_ELEMENT_LEN] = {0};
  bool ifExhaustedSuspension = false;
  uint16_t validBit = 0;
  uint8_t repeatTimes = 1;
};
template <typename T>
struct MrgSortSrcList {
  MrgSortSrcList() = default;
  MrgSortSrcList(const LocalTensor<T>& src1In, const LocalTensor<T>& src2In, const LocalTensor<T>& src3In,
                 const LocalTensor<T>& src4In)
      : src1(src1In), src2(src2In), src3(src3In), src4(src4In) {}
  LocalTensor<T> src1, src2, src3, src4;
};

template <typename T>
ASCENDC_INLINE void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<uint32_t>& src1,
                           const int32_t repeatTime) {
  vnpu::sort32(dst.pointer(), src0.pointer(), src1.pointer(), vnpu::dtype_of<T>(), static_cast<uint32_t>(repeatTime));
}
template <typename T>
ASCENDC_INLINE void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const MrgSort4Info& params) {
  vnpu::MergeLists m;
  m.list[0] = src.src1.pointer();
  m.list[1] = src.src2.pointer();
  m.list[2] = src.src3.pointer();
  m.list[3] = src.src4.pointer();
  for (int32_t i = 0; i < MRG_SORT_ELEMENT_LEN; i++) m.length[i] = params.elementLengths[i];
  m.valid = params.validBit;
  m.stop_when_exhausted = params.ifExhaustedSuspension;
  m.repeat = params.repeatTimes;
  vnpu::merge_sort(dst.pointer(), m, vnpu::dtype_of<T>());
}
ASCENDC_INLINE void GetMrgSortResult(uint16_t& mrgSortList1, uint16_t& mrgSortList2, uint16_t& mrgSortList3,
                                     uint16_t& mrgSortList4) {
  mrgSortList1 = vnpu::merged(0);
  mrgSortList2 = vnpu::merged(1);
  mrgSortList3 = vnpu::merged(2);
  mrgSortList4 = vnpu::merged(3);
}
// sortedNum is set when the merge stops at the end of a list.
template <typename T, bool isExhaustedSuspension = false>
ASCENDC_INLINE void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& sortList,
                            const uint16_t elementCountList[4], uint32_t sortedNum[4], uint16_t validBit,
                            const int32_t repeatTime) {
  MrgSort(dst, sortList,
          MrgSort4Info(elementCountList, isExhaustedSuspension, validBit, static_cast<uint16_t>(repeatTime)));
  if constexpr (isExhaustedSuspension)
    for (uint32_t i = 0; i < 4; i++) sortedNum[i] = vnpu::merged_just_now(i);
}

// Elements of T that the sorted form of so many scores takes: 8 bytes a score.
template <typename T>
ASCENDC_INLINE uint32_t GetSortOffset(const uint32_t elemOffset) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "scores are half or float");
  return elemOffset * (8 / sizeof(T));
}
template <typename T>
ASCENDC_INLINE uint32_t GetSortLen(const uint32_t elemCount) {
  return GetSortOffset<T>(elemCount);
}

// Scores need no preparation on architecture 2201: the result is the source.
template <typename T>
ASCENDC_INLINE void Concat(LocalTensor<T>& concat, const LocalTensor<T>& src, const LocalTensor<T>&,
                           const int32_t /*repeatTime*/) {
  concat = src;
}
template <typename T, bool isFullSort>
ASCENDC_INLINE void Sort(const LocalTensor<T>& dst, const LocalTensor<T>& concat, const LocalTensor<uint32_t>& index,
                         LocalTensor<T>& tmp, const int32_t repeatTime) {
  if constexpr (isFullSort)
    vnpu::sort_all(dst.pointer(), concat.pointer(), index.pointer(), tmp.pointer(), vnpu::dtype_of<T>(),
                   static_cast<uint32_t>(repeatTime));
  else
    Sort32(dst, concat, index, repeatTime);
}
// Scores and indices apart again, 32 a repeat.
template <typename T>
ASCENDC_INLINE void Extract(const LocalTensor<T>& dstValue, const LocalTensor<uint32_t>& dstIndex,
                            const LocalTensor<T>& sorted, const int32_t repeatTime) {
  constexpr bool is_half = std::is_same_v<T, half>;
  static_assert(is_half || std::is_same_v<T, float>, "Extract takes half or float");
  uint16_t repeats = static_cast<uint16_t>(repeatTime);
  uint64_t kept = 0;
  // A repeat is 256 bytes, 32 records. The score is the first of a record's four halves or two floats.
  GatherMask(dstValue, sorted, static_cast<uint8_t>(is_half ? 3 : 1), false, 0, {1, repeats, 8, 0}, kept);
  vnpu::barrier(vnpu::Pipe::V);
  GatherMask(dstIndex, sorted.template ReinterpretCast<uint32_t>(), static_cast<uint8_t>(2), false, 0,
             {1, repeats, 8, 0}, kept);
}

}  // namespace AscendC
