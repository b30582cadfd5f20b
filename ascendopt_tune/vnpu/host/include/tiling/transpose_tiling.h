// The tiling and temporary memory of the high-level Transpose on the host (AscendC reference, Transpose Tiling). Fields
// and sizes are those of asc-devkit for architecture 2201.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/tensor.h"
#include "kernel_tiling/softmax_tiling_data.h"
#include "register/tilingdata_base.h"

namespace api_tilings {

BEGIN_TILING_DATA_DEF(ConfusionTransposeTiling)
#define VNPU_FIELD(name) TILING_DATA_FIELD_DEF(uint32_t, name);
VNPU_TRANSPOSE_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
END_TILING_DATA_DEF;

}  // namespace api_tilings

namespace AscendC {
namespace detail {

constexpr uint32_t kTransposeTile = 16, kTransposeBlock = 32;
enum TransposeScene : uint32_t { kSwapToNd = 1, kSwapToNz, kSplitToNz, kSplitToNd, kJoinToNd, kJoinToNz, kMatrix };

// [B, N, S, D] and what its tiles take.
struct TransposeShape {
  uint32_t b = 0, n = 0, s = 0, d = 0, size = 0;
  TransposeShape(const ge::Shape& shape, uint32_t size_in) : size(size_in) {
    uint32_t* const axes[] = {&b, &n, &s, &d};
    for (size_t i = 0; i < 4 && i < shape.GetDimNum(); i++) *axes[i] = static_cast<uint32_t>(shape.GetDim(i));
  }
  static uint32_t tiles(uint32_t columns) { return (columns + kTransposeTile - 1) / kTransposeTile; }
  uint32_t block() const { return kTransposeBlock / size; }
  uint32_t h() const { return n * d; }
  uint32_t wide() const { return tiles(d) * kTransposeTile; }  // D in whole tiles
  uint32_t high() const { return tiles(s) * kTransposeTile; }
  uint32_t joined() const { return tiles(h()) * kTransposeTile; }
};

using Fields = std::vector<uint32_t>;

inline Fields swap_fields(const TransposeShape& t, uint32_t bytes) {
  constexpr uint32_t tile = kTransposeTile * kTransposeTile;
  const uint32_t room = bytes / t.size / tile * tile, need = t.high() * kTransposeTile;
  if (room == 0) return {};
  const uint32_t rows = room / kTransposeTile, pieces = need / room, all = t.high() * t.wide();
  return {t.block(),
          t.b,
          t.n,
          t.wide(),
          t.high(),
          t.wide() / kTransposeTile,
          room,
          rows,
          need,
          pieces,
          need % room,
          all,
          t.n * all,
          t.n * t.wide(),
          t.n * kTransposeTile,
          rows * pieces * t.n * t.wide()};
}

inline Fields split_fields(const TransposeShape& t, bool rows) {
  const uint32_t per_tile = kTransposeTile / t.block(), of_n = t.n * TransposeShape::tiles(t.d);
  const uint32_t to_all = t.n * t.wide() * t.high(), from_all = t.joined() * t.high();
  const uint32_t of_h = TransposeShape::tiles(t.h()), of_s = TransposeShape::tiles(t.s),
                 of_d = t.wide() / kTransposeTile;
  if (!rows)
    return {t.block(), t.b,        t.n,      t.d,  per_tile, t.h(),          of_h,
            of_s,      t.joined(), t.high(), of_d, t.wide(), t.wide() - t.d, t.high() * kTransposeTile,
            of_n,      to_all,     from_all};
  return {t.block(),
          t.b,
          t.n,
          t.d,
          t.h(),
          of_h,
          of_s,
          of_d,
          t.wide(),
          t.wide() - t.d,
          t.high() * kTransposeTile,
          of_n,
          t.high() * t.wide(),
          t.wide() * kTransposeTile,
          t.wide() * t.block(),
          to_all,
          from_all,
          per_tile};
}

inline Fields join_fields(const TransposeShape& t) {
  return {t.block(),
          t.b,
          t.n,
          t.d,
          t.h(),
          TransposeShape::tiles(t.h()),
          TransposeShape::tiles(t.s),
          TransposeShape::tiles(t.d),
          t.joined(),
          t.high() * kTransposeTile,
          t.joined() * kTransposeTile,
          t.block() * t.joined(),
          t.n * t.wide() * t.high(),
          t.joined() * t.high(),
          kTransposeTile / t.block()};
}

// [H, W] are the first two axes.
inline Fields matrix_fields(const TransposeShape& t) {
  return {t.block(), t.b, t.n, t.b / kTransposeTile, t.b * t.block() * t.size / kTransposeBlock, t.n / t.block()};
}

inline Fields transpose_fields(const TransposeShape& t, uint32_t bytes, uint32_t scene) {
  if (t.size == 0 || t.size > kTransposeTile * 2) return {};
  if (scene == kSwapToNd || scene == kSwapToNz) return swap_fields(t, bytes);
  if (scene == kSplitToNz || scene == kSplitToNd) return split_fields(t, scene == kSplitToNd);
  if (scene == kJoinToNd || scene == kJoinToNz) return join_fields(t);
  return scene == kMatrix ? matrix_fields(t) : Fields{};
}

inline void hand_over(const Fields& f, tiling::ConfusionTransposeTiling& to) {
  uint32_t* const fields[] = {
#define VNPU_FIELD(name) &to.name,
      VNPU_TRANSPOSE_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
  };
  for (size_t i = 0; i < f.size(); i++) *fields[i] = f[i];
}
inline void hand_over(const Fields& f, api_tilings::ConfusionTransposeTiling& to) {
  tiling::ConfusionTransposeTiling plain;
  hand_over(f, plain);
#define VNPU_FIELD(name) to.set_##name(plain.name);
  VNPU_TRANSPOSE_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
}

}  // namespace detail

inline void GetTransposeMaxMinTmpSize(const ge::Shape& srcShape, const uint32_t typeSize,
                                      const uint32_t transposeTypeIn, uint32_t& maxValue, uint32_t& minValue) {
  constexpr uint32_t tile = detail::kTransposeTile * detail::kTransposeTile;
  const bool swaps = transposeTypeIn == detail::kSwapToNd || transposeTypeIn == detail::kSwapToNz;
  const bool matrix = transposeTypeIn == 0 || transposeTypeIn >= detail::kMatrix;
  minValue = matrix ? 0 : (swaps ? 1 : 2) * tile * typeSize;
  maxValue = swaps ? detail::TransposeShape(srcShape, typeSize).high() * detail::kTransposeTile * typeSize : minValue;
}
template <typename Tiling>
void GetTransposeTilingInfo(const ge::Shape& srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                            const uint32_t transposeTypeIn, Tiling& tiling) {
  const detail::TransposeShape shape(srcShape, typeSize);
  detail::hand_over(detail::transpose_fields(shape, stackBufferSize, transposeTypeIn), tiling);
}

// The names of before.
inline void GetConfusionTransposeMaxMinTmpSize(const ge::Shape& srcShape, const uint32_t typeSize,
                                               const uint32_t transposeTypeIn, uint32_t& maxValue, uint32_t& minValue) {
  GetTransposeMaxMinTmpSize(srcShape, typeSize, transposeTypeIn, maxValue, minValue);
}
template <typename Tiling>
void GetConfusionTransposeTilingInfo(const ge::Shape& srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                                     const uint32_t transposeTypeIn, Tiling& tiling) {
  GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize, transposeTypeIn, tiling);
}
template <typename Tiling>
void GetConfusionTransposeOnlyTilingInfo(const ge::Shape& srcShape, const uint32_t stackBufferSize,
                                         const uint32_t typeSize, Tiling& tiling) {
  GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize, detail::kMatrix, tiling);
}

}  // namespace AscendC
