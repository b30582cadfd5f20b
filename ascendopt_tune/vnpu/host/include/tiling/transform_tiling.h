// Tilings and temporary memory of Pad, UnPad and TransData on the host (AscendC reference, Pad Tiling, UnPad Tiling,
// GetTransDataMaxMinTmpSize). Fields and sizes are those of asc-devkit for architecture 2201.
#pragma once
#include <algorithm>
#include <cstdint>

#include "graph/tensor.h"
#include "graph/types.h"
#include "kernel_tiling/transform_data.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/row_tiling.h"

namespace api_tilings {

#define VNPU_FIELD(name) TILING_DATA_FIELD_DEF(uint32_t, name);
BEGIN_TILING_DATA_DEF(PadTiling)
VNPU_PAD_TILING_FIELDS(VNPU_FIELD)
END_TILING_DATA_DEF;
BEGIN_TILING_DATA_DEF(UnPadTiling)
VNPU_UNPAD_TILING_FIELDS(VNPU_FIELD)
END_TILING_DATA_DEF;
#undef VNPU_FIELD

}  // namespace api_tilings

namespace AscendC {
namespace detail {

constexpr uint32_t kPadTile = 16, kPadBlock = 32;  // elements that are turned at once; bytes

// Rows of blocks, one for each element, twice: as they are and turned. `groups` of sixteen.
inline uint32_t pad_bytes(uint32_t groups) { return groups * kPadTile * kPadBlock * 2; }

// Everything but the fields that only a temporary buffer gives.
inline tiling::PadTiling pad_fields(const ge::Shape& shape, const ge::Shape& original, uint32_t bytes, uint32_t size) {
  tiling::PadTiling t;
  const auto rows = static_cast<uint32_t>(shape.GetDim(0)), columns = static_cast<uint32_t>(shape.GetDim(1));
  const uint32_t block = kPadBlock / size, rows_at_once = 255, brcbs_at_once = 254;
  t.srcHeight = rows;
  t.srcWidth = columns;
  t.srcOriWidth = static_cast<uint32_t>(original.GetDim(1));
  t.widthWithoutLastBlock = columns - block;
  t.blocksPerRow = columns * size / kPadBlock;
  t.heightTiling = rows_at_once;
  t.heightFractal = rows / rows_at_once;
  t.heightFractalTail = rows % rows_at_once;
  t.mainLoopOffset = rows_at_once * columns;
  t.tailBlockOffset = t.heightFractal * rows_at_once * columns + t.widthWithoutLastBlock;
  const uint32_t groups = bytes / pad_bytes(1);
  if (groups == 0) return t;
  const uint32_t elements = groups * kPadTile;
  t.tmpBuffer1BlockNum = groups;
  t.tmpBuffer1RowNum = elements;
  t.tmpBuffer2Offset = elements * block;
  t.widthTiling = t.brcbTiling = elements;
  t.widthFractal = columns / elements;
  t.widthFractalTail = columns % elements;
  t.widthFractalTailAlingned = ((t.widthFractalTail - 1) / block + 1) * block;  // wraps round for no tail, as CANN's
  t.brcbFractal = rows * columns / elements;
  t.brcbFractalTail = rows * columns % elements;
  t.maxRepeatTimes = brcbs_at_once;
  t.brcbTilingRepeatTimes = elements / 8 / brcbs_at_once;
  t.brcbTilingRepeatTimesTail = elements / 8 % brcbs_at_once;
  t.brcbFractalTailRepeatTimes = t.brcbFractalTail / 8 / brcbs_at_once;
  t.brcbFractalTailRepeatTimesTail = t.brcbFractalTail / 8 % brcbs_at_once;
  return t;
}

inline tiling::UnPadTiling unpad_fields(const ge::Shape& shape, uint32_t bytes, uint32_t size) {
  tiling::UnPadTiling t;
  t.srcHeight = static_cast<uint32_t>(shape.GetDim(0));
  t.srcWidth = static_cast<uint32_t>(shape.GetDim(1));
  const uint32_t groups = bytes / pad_bytes(1), elements = groups * kPadTile;
  if (groups == 0) return t;
  t.tmpBuffer1BlockNum = groups;
  t.tmpBuffer1RowNum = t.widthTiling = elements;
  t.tmpBuffer2Offset = elements * (kPadBlock / size);
  t.widthFractal = (t.srcWidth + elements - 1) / elements;
  t.widthFractalTail = t.srcWidth % elements != 0 ? t.srcWidth % elements : elements;
  return t;
}

}  // namespace detail

inline void GetPadMaxMinTmpSize(const ge::Shape& srcShape, const uint32_t /*typeSize*/, uint32_t& maxValue,
                                uint32_t& minValue) {
  const auto elements = static_cast<uint32_t>(srcShape.GetDim(0) * srcShape.GetDim(1));
  minValue = detail::pad_bytes(1);
  maxValue = detail::pad_bytes((elements - 1) / detail::kPadTile + 1);
}
inline void PadTilingFunc(const ge::Shape& srcShape, const ge::Shape& oriSrcShape, const uint32_t stackBufferSize,
                          const uint32_t typeSize, tiling::PadTiling& tiling) {
  tiling = detail::pad_fields(srcShape, oriSrcShape, stackBufferSize, typeSize);
}
inline void PadTilingFunc(const ge::Shape& srcShape, const ge::Shape& oriSrcShape, const uint32_t stackBufferSize,
                          const uint32_t typeSize, api_tilings::PadTiling& tiling) {
  const tiling::PadTiling t = detail::pad_fields(srcShape, oriSrcShape, stackBufferSize, typeSize);
#define VNPU_FIELD(name) tiling.set_##name(t.name);
  VNPU_PAD_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
}

// One instruction does it on architecture 2201.
inline void GetUnPadMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const ge::Shape& /*srcShape*/,
                                  const uint32_t /*typeSize*/, uint32_t& maxValue, uint32_t& minValue) {
  maxValue = minValue = 0;
}
inline void UnPadTilingFunc(const ge::Shape& srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                            tiling::UnPadTiling& tiling) {
  tiling = detail::unpad_fields(srcShape, stackBufferSize, typeSize);
}
inline void UnPadTilingFunc(const ge::Shape& srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                            api_tilings::UnPadTiling& tiling) {
  const tiling::UnPadTiling t = detail::unpad_fields(srcShape, stackBufferSize, typeSize);
#define VNPU_FIELD(name) tiling.set_##name(t.name);
  VNPU_UNPAD_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
}

namespace detail {

// Which way TransData goes, and what it goes between.
struct TransDataSizes {
  static constexpr int64_t tile = 16;
  bool from = false, fractal = false;  // from NCDHW, or to it; to or from FRACTAL_Z_3D
  int64_t n = 0, c = 0, d = 0, h = 0, w = 0;
  static int64_t tiles(int64_t x) { return (x + tile - 1) / tile; }
  // The other side's shape has to be this.
  ge::Shape tiled() const {
    return fractal ? ge::Shape({d, tiles(c), h, w, tiles(n), tile, tile}) : ge::Shape({n, d, tiles(c), h, w, tile});
  }
  // Zeros for what C or N lacks to whole tiles, and what the steps leave (asc-devkit's numbers).
  int64_t bytes() const {
    constexpr int64_t size = 2, spare = 512;
    const int64_t wide = tiles(n) * tile, hw = tiles(h * w) * tile, all = d * tiles(c) * tile * hw * size;
    if (!fractal) return all + (from ? d * hw * size : spare);
    if (from) return all * wide + std::max(c * d * hw, d * h * w * wide) * size;
    return all * wide * (n == wide && c == tiles(c) * tile ? 1 : 2);
  }
};

inline bool is_trans_data_type(ge::DataType type) {
  return type == ge::DT_FLOAT16 || type == ge::DT_BF16 || type == ge::DT_UINT16 || type == ge::DT_INT16;
}

}  // namespace detail

// False for formats and shapes that don't go together.
inline bool GetTransDataMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const ge::Shape& srcShape,
                                      const ge::Shape& dstShape, const ge::DataType dataType,
                                      const TransDataConfig& config, uint32_t& maxValue, uint32_t& minValue) {
  detail::TransDataSizes s;
  s.from = config.srcFormat == DataFormat::NCDHW;
  const DataFormat other = s.from ? config.dstFormat : config.srcFormat;
  s.fractal = other == DataFormat::FRACTAL_Z_3D;
  if (!s.fractal && other != DataFormat::NDC1HWC0) return false;
  if ((!s.from && config.dstFormat != DataFormat::NCDHW) || !detail::is_trans_data_type(dataType)) return false;
  const ge::Shape &plain = s.from ? srcShape : dstShape, &tiled = s.from ? dstShape : srcShape;
  if (plain.GetDimNum() != 5) return false;
  int64_t* const axes[] = {&s.n, &s.c, &s.d, &s.h, &s.w};
  for (size_t i = 0; i < 5; i++) *axes[i] = plain.GetDim(i);
  const ge::Shape wanted = s.tiled();
  if (tiled.GetDimNum() != wanted.GetDimNum()) return false;
  for (size_t i = 0; i < tiled.GetDimNum(); i++)
    if (tiled.GetDim(i) != wanted.GetDim(i)) return false;
  maxValue = minValue = static_cast<uint32_t>(s.bytes());
  return true;
}

}  // namespace AscendC
