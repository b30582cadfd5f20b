// The high-level Transpose, which was called ConfusionTranspose: layouts and two axes changed at once (AscendC
// reference, tensor transformation). What the fields of its tiling are is asc-devkit's.
#pragma once
#include "kernel_tiling/softmax_tiling_data.h"
#include "kernel_utils.h"
#include "vec_transpose.h"
#include "vnpu/adv_transpose.h"

namespace AscendC {

using tiling::ConfusionTransposeTiling;

namespace detail {

// A matrix of whole tiles, by one instruction for 16 rows: a repeat turns what a block of each row holds.
template <typename T>
ASCENDC_INLINE void transpose_matrix(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t rows,
                                     uint32_t columns, const char* api) {
  constexpr uint32_t block = 32 / sizeof(T), per_column = 16 / block;  // blocks that 16 results fill
  if (rows % 16 != 0 || columns % 16 != 0) vnpu::misuse(api, "H and W are multiples of 16 (AscendC reference)");
  const uint64_t to = reinterpret_cast<uint64_t>(dst.pointer()), from = reinterpret_cast<uint64_t>(src.pointer());
  constexpr uint32_t most = 255;
  for (uint32_t first = 0; first < columns / block; first += most)
    for (uint32_t r = 0; r < rows; r += 16) {
      const uint32_t repeat = columns / block - first < most ? columns / block - first : most;
      uint64_t to_list[16], from_list[16];
      for (uint32_t i = 0; i < 16; i++) {
        from_list[i] = from + ((r + i) * columns + first * block) * sizeof(T);
        to_list[i] = to + ((first * block + i / per_column) * rows + r + i % per_column * block) * sizeof(T);
      }
      vnpu::RowTranspose t;
      t.dst = to_list;
      t.src = from_list;
      t.dtype = vnpu::dtype_of<T>();
      t.repeat = repeat;
      if (repeat > 1) {
        t.dst_rep_stride = block * rows * sizeof(T) / 32;
        t.src_rep_stride = 1;
      }
      vnpu::transpose_rows(t, api);
    }
}

// [B, N, S, D] of a tiling; D is H / N.
ASCENDC_INLINE vnpu::LayoutTranspose layout_of(TransposeType type, const ConfusionTransposeTiling& tiling) {
  vnpu::LayoutTranspose t;
  t.b = tiling.param1;
  t.n = tiling.param2;
  switch (type) {
    case TransposeType::TRANSPOSE_NZ2ND_0213:
    case TransposeType::TRANSPOSE_NZ2NZ_0213:
      t.kind = type == TransposeType::TRANSPOSE_NZ2ND_0213 ? vnpu::LayoutTranspose::kSwapToNd
                                                           : vnpu::LayoutTranspose::kSwapToNz;
      t.s = tiling.param4;
      t.d = tiling.param3;
      t.temporary = tiling.param6;
      return t;
    case TransposeType::TRANSPOSE_NZ2NZ_012_WITH_N:
      t.kind = vnpu::LayoutTranspose::kSplitToNz;
      t.s = tiling.param7 * 16;
      break;
    case TransposeType::TRANSPOSE_NZ2ND_012_WITH_N:
      t.kind = vnpu::LayoutTranspose::kSplitToNd;
      t.s = tiling.param6 * 16;
      break;
    default:
      t.kind = type == TransposeType::TRANSPOSE_NZ2ND_012_WITHOUT_N ? vnpu::LayoutTranspose::kJoinToNd
                                                                    : vnpu::LayoutTranspose::kJoinToNz;
      t.s = tiling.param6 * 16;
      break;
  }
  t.d = tiling.param3;
  t.temporary = 512;  // two tiles
  return t;
}

template <typename T>
ASCENDC_INLINE void transpose_layout(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                     const LocalTensor<uint8_t>& work, TransposeType type,
                                     const ConfusionTransposeTiling& tiling, const char* api) {
  constexpr bool two_or_four = sizeof(T) == 2 || sizeof(T) == 4;
  static_assert(two_or_four && !std::is_same_v<T, bfloat16_t>,
                "AscendC::Transpose takes half, float and integers of 16 and 32 bits");
  if (type == TransposeType::TRANSPOSE_ND2ND_ONLY) return transpose_matrix(dst, src, tiling.param1, tiling.param2, api);
  if (type == TransposeType::TRANSPOSE_TYPE_NONE || type > TransposeType::TRANSPOSE_ND2ND_ONLY)
    return vnpu::unsupported(api, "this transposeType is not supported (AscendC reference, Transpose)");
  vnpu::LayoutTranspose t = layout_of(type, tiling);
  t.dst = dst.pointer();
  t.src = src.pointer();
  t.work = work.pointer();
  t.dtype = vnpu::dtype_of<T>();
  vnpu::transpose_layout(t, api);
}

}  // namespace detail

#define VNPU_TRANSPOSE(NAME)                                                                                  \
  template <typename T>                                                                                       \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                              \
                           const LocalTensor<uint8_t>& sharedTmpBuffer, TransposeType transposeType,          \
                           const ConfusionTransposeTiling& tiling) {                                          \
    detail::transpose_layout(dst, src, sharedTmpBuffer, transposeType, tiling, #NAME);                        \
  }                                                                                                           \
  template <typename T>                                                                                       \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, TransposeType transposeType, \
                           const ConfusionTransposeTiling& tiling) {                                          \
    LocalTensor<uint8_t> rest;                                                                                \
    PopStackBuffer<uint8_t, TPosition::LCM>(rest);                                                            \
    detail::transpose_layout(dst, src, rest, transposeType, tiling, #NAME);                                   \
  }
VNPU_TRANSPOSE(Transpose)
VNPU_TRANSPOSE(ConfusionTranspose)
#undef VNPU_TRANSPOSE

}  // namespace AscendC
