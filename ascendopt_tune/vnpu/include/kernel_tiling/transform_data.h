// What Pad, UnPad and TransData are told, on either side: the fields of their tilings (asc-devkit), and formats.
#pragma once
#include <cstdint>

namespace AscendC {

enum class DataFormat : uint8_t { ND = 0, NZ, NCHW, NC1HWC0, NHWC, NCDHW, NDC1HWC0, FRACTAL_Z_3D };
struct TransDataConfig {
  DataFormat srcFormat;
  DataFormat dstFormat;
};

namespace tiling {

#define VNPU_UNPAD_TILING_FIELDS(FIELD) \
  FIELD(srcHeight)                      \
  FIELD(srcWidth)                       \
  FIELD(tmpBuffer1BlockNum)             \
  FIELD(tmpBuffer1RowNum)               \
  FIELD(tmpBuffer2Offset)               \
  FIELD(widthTiling)                    \
  FIELD(widthFractal)                   \
  FIELD(widthFractalTail)

#define VNPU_PAD_TILING_FIELDS(FIELD)   \
  FIELD(srcHeight)                      \
  FIELD(srcWidth)                       \
  FIELD(srcOriWidth)                    \
  FIELD(widthWithoutLastBlock)          \
  FIELD(blocksPerRow)                   \
  FIELD(heightTiling)                   \
  FIELD(heightFractal)                  \
  FIELD(heightFractalTail)              \
  FIELD(mainLoopOffset)                 \
  FIELD(tailBlockOffset)                \
  FIELD(tmpBuffer1BlockNum)             \
  FIELD(tmpBuffer1RowNum)               \
  FIELD(tmpBuffer2Offset)               \
  FIELD(widthTiling)                    \
  FIELD(widthFractal)                   \
  FIELD(widthFractalTail)               \
  FIELD(widthFractalTailAlingned)       \
  FIELD(brcbTiling)                     \
  FIELD(brcbFractal)                    \
  FIELD(brcbFractalTail)                \
  FIELD(maxRepeatTimes)                 \
  FIELD(brcbTilingRepeatTimes)          \
  FIELD(brcbTilingRepeatTimesTail)      \
  FIELD(brcbFractalTailRepeatTimes)     \
  FIELD(brcbFractalTailRepeatTimesTail) \
  FIELD(reserved)

#define VNPU_FIELD(name) uint32_t name = 0;
struct alignas(8) UnPadTiling {
  VNPU_UNPAD_TILING_FIELDS(VNPU_FIELD)
};
struct alignas(8) PadTiling {
  VNPU_PAD_TILING_FIELDS(VNPU_FIELD)
};
#undef VNPU_FIELD

}  // namespace tiling
}  // namespace AscendC
