// The tiling of the high-level matrix multiplication as tiling functions fill it and kernels read it.
#pragma once
#include <cstdint>

#define VNPU_CUBE_TILING_FIELDS(FIELD) \
  FIELD(usedCoreNum)                   \
  FIELD(M)                             \
  FIELD(N)                             \
  FIELD(Ka)                            \
  FIELD(Kb)                            \
  FIELD(singleCoreM)                   \
  FIELD(singleCoreN)                   \
  FIELD(singleCoreK)                   \
  FIELD(baseM)                         \
  FIELD(baseN)                         \
  FIELD(baseK)                         \
  FIELD(depthA1)                       \
  FIELD(depthB1)                       \
  FIELD(stepM)                         \
  FIELD(stepN)                         \
  FIELD(isBias)                        \
  FIELD(transLength)                   \
  FIELD(iterateOrder)                  \
  FIELD(shareMode)                     \
  FIELD(shareL1Size)                   \
  FIELD(shareL0CSize)                  \
  FIELD(shareUbSize)                   \
  FIELD(batchM)                        \
  FIELD(batchN)                        \
  FIELD(singleBatchM)                  \
  FIELD(singleBatchN)                  \
  FIELD(stepKa)                        \
  FIELD(stepKb)                        \
  FIELD(depthAL1CacheUB)               \
  FIELD(depthBL1CacheUB)               \
  FIELD(dbL0A)                         \
  FIELD(dbL0B)                         \
  FIELD(dbL0C)                         \
  FIELD(ALayoutInfoB)                  \
  FIELD(ALayoutInfoS)                  \
  FIELD(ALayoutInfoN)                  \
  FIELD(ALayoutInfoG)                  \
  FIELD(ALayoutInfoD)                  \
  FIELD(BLayoutInfoB)                  \
  FIELD(BLayoutInfoS)                  \
  FIELD(BLayoutInfoN)                  \
  FIELD(BLayoutInfoG)                  \
  FIELD(BLayoutInfoD)                  \
  FIELD(CLayoutInfoB)                  \
  FIELD(CLayoutInfoS1)                 \
  FIELD(CLayoutInfoN)                  \
  FIELD(CLayoutInfoG)                  \
  FIELD(CLayoutInfoS2)                 \
  FIELD(BatchNum)                      \
  FIELD(mxTypePara)

namespace AscendC::tiling {

// How a matrix multiplication is cut (AscendC reference, TCubeTiling): lengths in elements. Aligned as structures are
// that a tiling class holds.
struct alignas(8) TCubeTiling {
#define VNPU_FIELD(name) int32_t name = 0;
  VNPU_CUBE_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
};

}  // namespace AscendC::tiling
