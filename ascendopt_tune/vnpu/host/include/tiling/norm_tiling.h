// Tiling data of normalizing APIs that kernels of 2201 here don't call: host sources of CANN's open repositories keep
// structures for later architectures beside those of 2201. The fields are CANN's (AscendC reference), because tiling
// data with such a structure among them have to be as long; the questions for its values end the program.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "graph/tensor.h"
#include "register/tilingdata_base.h"

namespace optiling {

BEGIN_TILING_DATA_DEF(LayerNormSeparateTiling)
TILING_DATA_FIELD_DEF(uint32_t, aLength);
TILING_DATA_FIELD_DEF(uint32_t, rLength);
TILING_DATA_FIELD_DEF(uint32_t, halfAddRepeatTimes);
TILING_DATA_FIELD_DEF(uint32_t, rHeadLength);
TILING_DATA_FIELD_DEF(float, k2Rec);
TILING_DATA_FIELD_DEF(float, k2RRec);
TILING_DATA_FIELD_DEF(uint32_t, inputXSize);
TILING_DATA_FIELD_DEF(uint32_t, meanVarSize);
TILING_DATA_FIELD_DEF(uint32_t, numberOfTmpBuf);
TILING_DATA_FIELD_DEF(uint32_t, varianceTmpTensorPos);
TILING_DATA_FIELD_DEF(uint32_t, varianceTmpTensorSize);
TILING_DATA_FIELD_DEF(uint32_t, tmpBufSize);
TILING_DATA_FIELD_DEF(uint32_t, oneTmpSize);
TILING_DATA_FIELD_DEF(uint32_t, firstTmpStartPos);
TILING_DATA_FIELD_DEF(uint32_t, secondTmpStartPos);
TILING_DATA_FIELD_DEF(uint32_t, thirdTmpStartPos);
TILING_DATA_FIELD_DEF(uint32_t, loopRound);
TILING_DATA_FIELD_DEF(uint32_t, inputRoundSize);
TILING_DATA_FIELD_DEF(uint32_t, inputTailSize);
TILING_DATA_FIELD_DEF(uint32_t, inputTailPos);
TILING_DATA_FIELD_DEF(uint32_t, meanVarRoundSize);
TILING_DATA_FIELD_DEF(uint32_t, meanVarTailSize);
TILING_DATA_FIELD_DEF(uint32_t, meanVarTailPos);
TILING_DATA_FIELD_DEF(uint32_t, arCurLength);
TILING_DATA_FIELD_DEF(uint32_t, aCurLength);
TILING_DATA_FIELD_DEF(float, rValueBack);
END_TILING_DATA_DEF;
#ifndef __aicore__
REGISTER_TILING_DATA_CLASS(LayerNormSeparateTilingOpApi, LayerNormSeparateTiling)
#endif

}  // namespace optiling

// A function of CANN's whose answer nobody has worked out here: whoever calls it is told so.
#define VNPU_NO_ANSWER(NAME)                                                                                       \
  template <typename... Arguments>                                                                                 \
  void NAME(Arguments&&...) {                                                                                      \
    std::fputs(#NAME ": not covered by the virtual NPU (ascendopt_tune/vnpu/host/include/tiling/norm_tiling.h)\n", \
               stderr);                                                                                            \
    std::abort();                                                                                                  \
  }
namespace AscendC {

VNPU_NO_ANSWER(GetLayerNormMaxMinTmpSize)
VNPU_NO_ANSWER(GetLayerNormNDTilingInfo)
VNPU_NO_ANSWER(GetNormalizeMaxMinTmpSize)
VNPU_NO_ANSWER(GetWelfordUpdateMaxMinTmpSize)
VNPU_NO_ANSWER(GetWelfordFinalizeMaxMinTmpSize)

}  // namespace AscendC
#undef VNPU_NO_ANSWER
