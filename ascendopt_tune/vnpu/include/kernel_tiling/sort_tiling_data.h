// The tiling of TopK, which the host reckons and the kernel hands on: fields as asc-devkit has them.
#pragma once
#include <cstdint>

namespace AscendC {

enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };
enum class TopKAlgo { RADIX_SELECT, MERGE_SORT };
enum class TopKOrder { UNSET, LARGEST, SMALLEST };
struct TopKConfig {
  TopKAlgo algo = TopKAlgo::MERGE_SORT;
  TopKOrder order = TopKOrder::UNSET;
  bool sorted = true;
};

namespace tiling {

#define VNPU_TOPK_TILING_FIELDS(FIELD)      \
  FIELD(int32_t, tmpLocalSize)              \
  FIELD(int32_t, allDataSize)               \
  FIELD(int32_t, innerDataSize)             \
  FIELD(uint32_t, sortRepeat)               \
  FIELD(int32_t, mrgSortRepeat)             \
  FIELD(int32_t, kAlignFourBytes)           \
  FIELD(int32_t, kAlignTwoBytes)            \
  FIELD(int32_t, maskOffset)                \
  FIELD(int32_t, maskVreducev2FourBytes)    \
  FIELD(int32_t, maskVreducev2TwoBytes)     \
  FIELD(int32_t, mrgSortSrc1offset)         \
  FIELD(int32_t, mrgSortSrc2offset)         \
  FIELD(int32_t, mrgSortSrc3offset)         \
  FIELD(int32_t, mrgSortTwoQueueSrc1Offset) \
  FIELD(int32_t, mrgFourQueueTailPara1)     \
  FIELD(int32_t, mrgFourQueueTailPara2)     \
  FIELD(int32_t, srcIndexOffset)            \
  FIELD(uint32_t, copyUbToUbBlockCount)     \
  FIELD(int32_t, topkMrgSrc1MaskSizeOffset) \
  FIELD(int32_t, topkNSmallSrcIndexOffset)  \
  FIELD(uint32_t, vreduceValMask0)          \
  FIELD(uint32_t, vreduceValMask1)          \
  FIELD(uint32_t, vreduceIdxMask0)          \
  FIELD(uint32_t, vreduceIdxMask1)          \
  FIELD(uint16_t, vreducehalfValMask0)      \
  FIELD(uint16_t, vreducehalfValMask1)      \
  FIELD(uint16_t, vreducehalfValMask2)      \
  FIELD(uint16_t, vreducehalfValMask3)      \
  FIELD(uint16_t, vreducehalfValMask4)      \
  FIELD(uint16_t, vreducehalfValMask5)      \
  FIELD(uint16_t, vreducehalfValMask6)      \
  FIELD(uint16_t, vreducehalfValMask7)

struct alignas(8) TopkTiling {
#define VNPU_FIELD(type, name) type name = 0;
  VNPU_TOPK_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
};

}  // namespace tiling
}  // namespace AscendC
