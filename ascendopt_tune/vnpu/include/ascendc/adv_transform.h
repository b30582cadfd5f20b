// High-level APIs Pad, UnPad and TransData. The instructions are those of CANN's own bodies (asc-devkit, pad and
// transdata for architecture 2201), from whatever temporary buffer there is.
#pragma once
#include "data_copy.h"
#include "kernel_tiling/transform_data.h"
#include "kernel_utils.h"
#include "sync.h"
#include "layout.h"
#include "vec_duplicate.h"
#include "vec_gather.h"
#include "vec_transpose.h"

namespace AscendC {

struct PadParams {
  uint16_t leftPad = 0;
  uint16_t rightPad = 0;
  int32_t padValue = 0;
};
struct UnPadParams {
  uint16_t leftPad = 0;
  uint16_t rightPad = 0;
};

namespace detail {

// Rows of whole blocks: copied, and the last block of each gets its padding, 255 rows at a time.
template <typename T>
ASCENDC_INLINE void pad_whole_blocks(const LocalTensor<T>& dst, const LocalTensor<T>& src, const PadParams& p,
                                     const tiling::PadTiling& t) {
  constexpr uint32_t block = 32 / sizeof(T);
  if (p.leftPad != 0) vnpu::misuse("Pad", "leftPad has to be 0 where the width fills whole blocks of 32 B");
  if (t.srcOriWidth > t.srcWidth || t.srcWidth - t.srcOriWidth > block || p.rightPad > t.srcWidth - t.srcOriWidth)
    vnpu::misuse("Pad", "rightPad goes past the 32 B that the original width is rounded up to");
  DataCopy(dst, src, t.srcHeight * t.srcWidth);
  PipeBarrier<PIPE_V>();
  uint64_t mask[2] = {low_bits(p.rightPad) << (block - (t.srcWidth - t.srcOriWidth)), 0};
  for (uint32_t i = 0; i < t.heightFractal; i++)
    Duplicate<T, true>(dst[i * t.mainLoopOffset + t.widthWithoutLastBlock], static_cast<T>(p.padValue), mask,
                       static_cast<uint8_t>(t.heightTiling), 1, static_cast<uint8_t>(t.blocksPerRow));
  if (t.heightFractalTail)
    Duplicate<T, true>(dst[t.tailBlockOffset], static_cast<T>(p.padValue), mask,
                       static_cast<uint8_t>(t.heightFractalTail), 1, static_cast<uint8_t>(t.blocksPerRow));
}

// Rows of other widths: a block for every element (`loaded`), in the order in which the result has them (`laid`), which
// is then turned: the first line of sixteen blocks is sixteen elements.
template <typename T>
class PadStream {
 public:
  ASCENDC_INLINE PadStream(const LocalTensor<T>& src, const LocalTensor<T>& room, const tiling::PadTiling& t)
      : src_(src), loaded_(room), laid_(room[t.tmpBuffer2Offset]), t_(t), full_(t.tmpBuffer1RowNum), used_(full_) {}
  ASCENDC_INLINE void values(uint32_t at, uint32_t n, int32_t value) {
    if (n) Duplicate<T, true>(laid_[at * kBlock], static_cast<T>(value), kBlock, static_cast<uint8_t>(n), 1, 1);
  }
  // The next `n` elements of the source, from place `at` on.
  ASCENDC_INLINE void take(uint32_t at, uint32_t n) {
    while (n != 0) {
      PipeBarrier<PIPE_V>();
      const uint32_t left = full_ - used_;
      if (n <= left) {
        move(at, n);
        return;
      }
      if (left != 0) {
        move(at, left);
        at += left;
        n -= left;
        PipeBarrier<PIPE_V>();
      }
      load();
    }
  }
  ASCENDC_INLINE void turn() {
    TransDataTo5HDParams p;
    p.repeatTimes = static_cast<uint8_t>(t_.tmpBuffer1BlockNum);
    if (t_.tmpBuffer1BlockNum > 255) vnpu::misuse("Pad", "sharedTmpBuffer holds more than 255 groups of 16 elements");
    if (p.repeatTimes > 1) p.dstRepStride = p.srcRepStride = 16;
    uint64_t lines[16];
    for (uint32_t i = 0; i < 16; i++) lines[i] = laid_[i * kBlock].GetPhyAddr();
    PipeBarrier<PIPE_V>();
    TransDataTo5HD<T>(lines, lines, p);
    PipeBarrier<PIPE_V>();
  }
  // The first lines of `elements` of them.
  ASCENDC_INLINE void store(const LocalTensor<T>& dst, uint32_t elements) {
    constexpr uint16_t lines = 16 / kBlock;
    if (elements / 16)
      DataCopy(dst, laid_,
               DataCopyParams(static_cast<uint16_t>(elements / 16), lines, static_cast<uint16_t>(16 - lines), 0));
    if (elements % 16)
      DataCopy(dst[elements / 16 * 16], laid_[elements / 16 * 16 * kBlock], DataCopyParams(1, 1, 15, 0));
  }

 private:
  static constexpr uint32_t kBlock = 32 / sizeof(T);
  ASCENDC_INLINE void move(uint32_t at, uint32_t n) {
    DataCopy(laid_[at * kBlock], loaded_[used_ * kBlock], DataCopyParams(1, static_cast<uint16_t>(n), 0, 0));
    used_ += n;
  }
  ASCENDC_INLINE void load() {
    const bool last = round_ == t_.brcbFractal;
    const uint32_t many = last ? t_.brcbFractalTailRepeatTimes : t_.brcbTilingRepeatTimes;
    const uint32_t rest = last ? t_.brcbFractalTailRepeatTimesTail : t_.brcbTilingRepeatTimesTail;
    if (last) full_ = t_.brcbFractalTail;
    const uint32_t from = round_ * t_.brcbTiling;
    for (uint32_t i = 0; i <= many; i++) {
      const uint32_t first = i * t_.maxRepeatTimes * 8, n = i < many ? t_.maxRepeatTimes : rest;
      if (n) Brcb(loaded_[first * kBlock], src_[from + first], static_cast<uint8_t>(n), BrcbRepeatParams(1, 8));
    }
    if (round_ > t_.brcbFractal || full_ == 0) vnpu::misuse("Pad", "the tiling is another shape's");
    round_++;
    used_ = 0;
  }

  const LocalTensor<T> src_, loaded_, laid_;
  const tiling::PadTiling& t_;
  uint32_t full_, used_, round_ = 0;
};

template <typename T>
ASCENDC_INLINE void pad_elements(const LocalTensor<T>& dst, const LocalTensor<T>& src, const PadParams& p,
                                 const LocalTensor<uint8_t>& room, const tiling::PadTiling& t) {
  constexpr uint32_t block = 32 / sizeof(T);
  const uint32_t width = t.srcWidth + p.leftPad + p.rightPad;
  if (width != (t.srcWidth + block - 1) / block * block)
    vnpu::misuse("Pad", "the padded width has to be the width rounded up to 32 B");
  if (t.srcHeight * t.srcWidth % block != 0) vnpu::misuse("Pad", "the source has to fill whole blocks of 32 B");
  if (t.tmpBuffer1BlockNum == 0 || room.GetSize() < t.tmpBuffer1BlockNum * 1024)
    vnpu::misuse("Pad", "sharedTmpBuffer is smaller than the tiling says");
  PadStream<T> stream(src, room.template ReinterpretCast<T>(), t);
  for (uint32_t row = 0; row < t.srcHeight; row++)
    for (uint32_t i = 0; i <= t.widthFractal; i++) {
      const bool last = i == t.widthFractal;
      const uint32_t left = i == 0 ? p.leftPad : 0, right = last ? p.rightPad : 0;
      const uint32_t all = last ? t.widthFractalTailAlingned : t.tmpBuffer1RowNum;
      stream.values(0, left, p.padValue);
      stream.values(all - right, right, p.padValue);
      stream.take(left, all - left - right);
      stream.turn();
      stream.store(dst[row * width + i * t.tmpBuffer1RowNum], all);
    }
}

template <typename T>
constexpr bool is_padded_type = sizeof(T) == 2 || sizeof(T) == 4;

}  // namespace detail

template <typename T>
ASCENDC_INLINE void Pad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, PadParams& padParams,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, tiling::PadTiling& tiling) {
  static_assert(detail::is_padded_type<T>, "Pad takes elements of 16 and 32 bits");
  if (tiling.srcHeight == 0 || tiling.srcWidth == 0) vnpu::misuse("Pad", "tiling is empty; PadTilingFunc fills it");
  if (tiling.srcWidth * sizeof(T) % 32 == 0)
    detail::pad_whole_blocks(dstTensor, srcTensor, padParams, tiling);
  else
    detail::pad_elements(dstTensor, srcTensor, padParams, sharedTmpBuffer, tiling);
}
template <typename T>
ASCENDC_INLINE void Pad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, PadParams& padParams,
                        tiling::PadTiling& tiling) {
  LocalTensor<uint8_t> rest;
  PopStackBuffer<uint8_t, TPosition::LCM>(rest);
  Pad(dstTensor, srcTensor, padParams, rest, tiling);
}

// leftPad has no effect, as documented.
template <typename T>
ASCENDC_INLINE void UnPad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, UnPadParams& unPadParams,
                          LocalTensor<uint8_t>& /*sharedTmpBuffer*/, tiling::UnPadTiling& tiling) {
  static_assert(detail::is_padded_type<T>, "UnPad takes elements of 16 and 32 bits");
  if (tiling.srcHeight == 0 || tiling.srcWidth * sizeof(T) % 32 != 0)
    vnpu::misuse("UnPad", "the width has to fill whole blocks of 32 B; UnPadTilingFunc fills the tiling");
  if (unPadParams.rightPad == 0 || unPadParams.rightPad * sizeof(T) >= 32)
    vnpu::misuse("UnPad", "rightPad has to be above 0 and below 32 B");
  GatherMaskParams p;
  p.repeatTimes = static_cast<uint16_t>(tiling.srcHeight);
  p.src0RepeatStride = static_cast<uint16_t>(tiling.srcWidth * sizeof(T) / 32);
  uint64_t kept = 0;
  GatherMask(dstTensor, srcTensor, 7, true, tiling.srcWidth - unPadParams.rightPad, p, kept);
  ResetMask();
}
template <typename T>
ASCENDC_INLINE void UnPad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, UnPadParams& unPadParams,
                          tiling::UnPadTiling& tiling) {
  LocalTensor<uint8_t> none;
  UnPad(dstTensor, srcTensor, unPadParams, none, tiling);
}

// ---- TransData ----

template <typename T, typename U>
struct TransDataParams {
  T srcLayout;
  U dstLayout;
};

namespace detail {

constexpr int32_t kTile = 16;

// N, C, D, H, W; how many tiles C and N take, and H * W rounded up to a tile.
struct TransDataShape {
  int32_t n, c, d, h, w;
  int32_t c1() const { return (c + kTile - 1) / kTile; }
  int32_t n1() const { return (n + kTile - 1) / kTile; }
  int32_t hw() const { return h * w; }
  int32_t whole() const { return (h * w + kTile - 1) / kTile * kTile; }
};

// Sixteen lines become the columns of tiles, `repeat` tiles one after another. Lines that the data lack are `spare`'s:
// `from_step`, `to_step` are elements from one line to the next, `from_repeat`, `to_repeat` blocks between tiles.
struct TileLines {
  int32_t from_step, to_step, from_lines, to_lines, repeat, from_repeat, to_repeat;
};
ASCENDC_INLINE void turn_tiles(const LocalTensor<half>& dst, const LocalTensor<half>& src,
                               const LocalTensor<half>& spare, const TileLines& t) {
  if (t.repeat > 255)
    vnpu::misuse("TransData", "a step takes more than 255 tiles, which the instruction can't count (C * D * H * W)");
  uint64_t from[16], to[16];
  for (int32_t i = 0; i < kTile; i++) {
    from[i] = i < t.from_lines ? src[i * t.from_step].GetPhyAddr() : spare.GetPhyAddr();
    to[i] = i < t.to_lines ? dst[i * t.to_step].GetPhyAddr() : spare[i * kTile].GetPhyAddr();
  }
  TransDataTo5HDParams p;
  p.repeatTimes = static_cast<uint8_t>(t.repeat);
  if (t.repeat > 1) {
    p.srcRepStride = static_cast<uint16_t>(t.from_repeat);
    p.dstRepStride = static_cast<uint16_t>(t.to_repeat);
  }
  TransDataTo5HD<half>(to, from, p);
}
ASCENDC_INLINE int32_t lines_of(int32_t all, int32_t tile) {
  return all - tile * kTile < kTile ? all - tile * kTile : kTile;
}
// `n` pieces of `elements`, gaps in elements.
ASCENDC_INLINE void move_pieces(const LocalTensor<half>& dst, const LocalTensor<half>& src, int32_t n, int32_t elements,
                                int32_t src_gap, int32_t dst_gap) {
  DataCopy(dst, src,
           DataCopyParams(static_cast<uint16_t>(n), static_cast<uint16_t>(elements / kTile),
                          static_cast<uint16_t>(src_gap / kTile), static_cast<uint16_t>(dst_gap / kTile)));
}

// [N, C, D, H * W] to [N, D, C1, H * W, C0]: C to the end tile by tile, then D before C1.
ASCENDC_INLINE void to_ndc1hwc0(const LocalTensor<half>& dst, const LocalTensor<half>& src,
                                const LocalTensor<half>& room, const TransDataShape& s) {
  const int32_t plane = s.d * s.whole(), tiles = s.hw() * kTile;
  Duplicate(room, static_cast<half>(0), plane);
  PipeBarrier<PIPE_V>();
  const LocalTensor<half> turned = room[plane];
  for (int32_t k = 0; k < s.n; k++) {
    for (int32_t j = 0; j < s.c1(); j++)
      turn_tiles(turned[j * plane * kTile], src[(k * s.c + j * kTile) * plane], room,
                 {plane, kTile, lines_of(s.c, j), kTile, plane / kTile, 1, kTile});
    PipeBarrier<PIPE_V>();
    for (int32_t i = 0; i < s.c1(); i++)
      move_pieces(dst[(k * s.d * s.c1() + i) * tiles], turned[i * plane * kTile], s.d, tiles,
                  (s.whole() - s.hw()) * kTile, (s.c1() - 1) * tiles);
    PipeBarrier<PIPE_V>();
  }
}

// And back. What H * W is rounded up by is whatever lies there.
ASCENDC_INLINE void from_ndc1hwc0(const LocalTensor<half>& dst, const LocalTensor<half>& src,
                                  const LocalTensor<half>& room, const TransDataShape& s) {
  constexpr int32_t spare = 256;  // elements for lines that C lacks
  const int32_t plane = s.d * s.whole(), tiles = s.hw() * kTile;
  const LocalTensor<half> laid = room[spare];
  for (int32_t k = 0; k < s.n; k++) {
    for (int32_t i = 0; i < s.d; i++)
      move_pieces(laid[i * s.whole() * kTile], src[(k * s.d + i) * s.c1() * tiles], s.c1(), tiles, 0,
                  (plane - s.hw()) * kTile);
    PipeBarrier<PIPE_V>();
    for (int32_t j = 0; j < s.c1(); j++)
      turn_tiles(dst[(k * s.c + j * kTile) * plane], laid[j * plane * kTile], room,
                 {kTile, plane, kTile, lines_of(s.c, j), plane / kTile, kTile, 1});
    PipeBarrier<PIPE_V>();
  }
}

// [N, C, D, H * W] to [D, C1, H * W, N1, N0, C0]: N to the end, H * W without what it was rounded up by, C to the end,
// D to the front.
ASCENDC_INLINE void to_fractal(const LocalTensor<half>& dst, const LocalTensor<half>& src,
                               const LocalTensor<half>& room, const TransDataShape& s) {
  const int32_t all = s.c * s.d * s.whole(), wide = s.n1() * kTile, plane = s.d * s.hw() * wide;
  const int32_t zeros = all > plane ? all : plane;
  Duplicate(room, static_cast<half>(0), zeros);
  PipeBarrier<PIPE_V>();
  const LocalTensor<half> turned = room[zeros];
  const bool rounded = s.whole() != s.hw();
  const LocalTensor<half> first = rounded ? turned : dst;
  for (int32_t j = 0; j < s.n1(); j++)
    turn_tiles(first[j * kTile], src[j * all * kTile], room,
               {all, wide, lines_of(s.n, j), kTile, all / kTile, 1, wide});
  PipeBarrier<PIPE_V>();
  if (rounded) {
    move_pieces(dst, turned, s.c * s.d, s.hw() * wide, (s.whole() - s.hw()) * wide, 0);
    PipeBarrier<PIPE_V>();
  }
  for (int32_t j = 0; j < s.c1(); j++)
    turn_tiles(turned[j * plane * kTile], dst[j * plane * kTile], room,
               {plane, kTile, lines_of(s.c, j), kTile, plane / kTile, 1, kTile});
  PipeBarrier<PIPE_V>();
  const int32_t tiles = s.hw() * wide * kTile;
  for (int32_t i = 0; i < s.c1(); i++)
    move_pieces(dst[i * tiles], turned[i * s.d * tiles], s.d, tiles, 0, (s.c1() - 1) * tiles);
  PipeBarrier<PIPE_V>();
}

ASCENDC_INLINE void from_fractal(const LocalTensor<half>& dst, const LocalTensor<half>& src,
                                 const LocalTensor<half>& room, const TransDataShape& s) {
  const int32_t wide = s.n1() * kTile, tiles = s.hw() * wide * kTile, whole = s.whole() * wide * kTile;
  const int32_t all = s.c1() * s.d * whole, lines = s.d * s.whole() * wide, plane = s.c * s.d * s.whole();
  const bool exact = s.c == s.c1() * kTile && s.n == wide;
  const LocalTensor<half> laid = exact ? dst : room, turned = exact ? room : room[all];
  Duplicate(laid, static_cast<half>(0), all);
  PipeBarrier<PIPE_V>();
  for (int32_t i = 0; i < s.d; i++)
    move_pieces(laid[i * whole], src[i * s.c1() * tiles], s.c1(), tiles, 0, s.d * whole - tiles);
  PipeBarrier<PIPE_V>();
  for (int32_t j = 0; j < s.c1(); j++)
    turn_tiles(turned[j * lines * kTile], laid[j * lines * kTile], room,
               {kTile, lines, kTile, kTile, lines / kTile, kTile, 1});
  PipeBarrier<PIPE_V>();
  for (int32_t j = 0; j < s.n1(); j++)
    turn_tiles(dst[j * kTile * plane], turned[j * kTile], room,
               {wide, plane, kTile, lines_of(s.n, j), plane / kTile, wide, 1});
  PipeBarrier<PIPE_V>();
}

// What a layout says of [N, C, D, H, W], and whether the other one is what it becomes.
template <DataFormat other, typename Plain, typename Tiled>
ASCENDC_INLINE TransDataShape trans_data_shape(const Plain& plain, const Tiled& tiled) {
  const auto a = plain.GetShape();
  const auto b = tiled.GetShape();
  static_assert(std::tuple_size_v<std::remove_cv_t<decltype(a)>> == 5, "TransData: NCDHW has five axes");
  const TransDataShape s{static_cast<int32_t>(Std::get<0>(a)), static_cast<int32_t>(Std::get<1>(a)),
                         static_cast<int32_t>(Std::get<2>(a)), static_cast<int32_t>(Std::get<3>(a)),
                         static_cast<int32_t>(Std::get<4>(a))};
  bool fits = false;
  if constexpr (other == DataFormat::FRACTAL_Z_3D) {
    static_assert(std::tuple_size_v<std::remove_cv_t<decltype(b)>> == 7, "TransData: FRACTAL_Z_3D has seven axes");
    fits = Std::get<0>(b) == s.d && Std::get<1>(b) == s.c1() && Std::get<2>(b) == s.h && Std::get<3>(b) == s.w &&
           Std::get<4>(b) == s.n1() && Std::get<5>(b) == kTile && Std::get<6>(b) == kTile;
  } else {
    static_assert(std::tuple_size_v<std::remove_cv_t<decltype(b)>> == 6, "TransData: NDC1HWC0 has six axes");
    fits = Std::get<0>(b) == s.n && Std::get<1>(b) == s.d && Std::get<2>(b) == s.c1() && Std::get<3>(b) == s.h &&
           Std::get<4>(b) == s.w && Std::get<5>(b) == kTile;
  }
  if (!fits) vnpu::misuse("TransData", "the shapes of source and destination don't go together");
  return s;
}

}  // namespace detail

template <const TransDataConfig& config, typename T, typename U, typename S>
ASCENDC_INLINE void TransData(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                              const LocalTensor<uint8_t>& sharedTmpBuffer, const TransDataParams<U, S>& params) {
  static_assert(sizeof(T) == 2, "TransData takes half, bfloat16_t, int16_t and uint16_t");
  static_assert(is_layout<U>::value && is_layout<S>::value, "TransData takes layouts");
  constexpr bool from = config.srcFormat == DataFormat::NCDHW;
  constexpr DataFormat other = from ? config.dstFormat : config.srcFormat;
  static_assert((from || config.dstFormat == DataFormat::NCDHW) &&
                    (other == DataFormat::FRACTAL_Z_3D || other == DataFormat::NDC1HWC0),
                "TransData goes from NCDHW to FRACTAL_Z_3D and NDC1HWC0, and back");
  const LocalTensor<half> dst = dstTensor.template ReinterpretCast<half>(),
                          src = srcTensor.template ReinterpretCast<half>(),
                          room = sharedTmpBuffer.template ReinterpretCast<half>();
  if constexpr (from && other == DataFormat::NDC1HWC0)
    detail::to_ndc1hwc0(dst, src, room, detail::trans_data_shape<other>(params.srcLayout, params.dstLayout));
  else if constexpr (from)
    detail::to_fractal(dst, src, room, detail::trans_data_shape<other>(params.srcLayout, params.dstLayout));
  else if constexpr (other == DataFormat::NDC1HWC0)
    detail::from_ndc1hwc0(dst, src, room, detail::trans_data_shape<other>(params.dstLayout, params.srcLayout));
  else
    detail::from_fractal(dst, src, room, detail::trans_data_shape<other>(params.dstLayout, params.srcLayout));
}
template <const TransDataConfig& config, typename T, typename U, typename S>
ASCENDC_INLINE void TransData(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                              const TransDataParams<U, S>& params) {
  LocalTensor<uint8_t> rest;
  PopStackBuffer<uint8_t, TPosition::LCM>(rest);
  TransData<config, T, U, S>(dstTensor, srcTensor, rest, params);
}

}  // namespace AscendC
