// The tilings of high-level APIs that both sides compute or hand on: SoftMax's, which a kernel may ask for itself
// (SoftMaxFlashV2TilingFunc), and that of transpositions. Values are asc-devkit's for architecture 2201.
#pragma once
#include <cstdint>

namespace AscendC::tiling {

#define VNPU_SOFTMAX_TILING_FIELDS(FIELD) \
  FIELD(srcM)                             \
  FIELD(srcK)                             \
  FIELD(srcSize)                          \
  FIELD(outMaxM)                          \
  FIELD(outMaxK)                          \
  FIELD(outMaxSize)                       \
  FIELD(splitM)                           \
  FIELD(splitK)                           \
  FIELD(splitSize)                        \
  FIELD(reduceM)                          \
  FIELD(reduceK)                          \
  FIELD(reduceSize)                       \
  FIELD(rangeM)                           \
  FIELD(tailM)                            \
  FIELD(tailSplitSize)                    \
  FIELD(tailReduceSize)

// How [srcM, srcK] is cut into pieces of splitM rows, and blocks of what is kept for each row.
#define VNPU_FIELD(name) uint32_t name = 0;
struct alignas(8) SoftMaxTiling {
  VNPU_SOFTMAX_TILING_FIELDS(VNPU_FIELD)
};
struct alignas(8) LogSoftMaxTiling {
  VNPU_SOFTMAX_TILING_FIELDS(VNPU_FIELD)
};
#undef VNPU_FIELD

#define VNPU_TRANSPOSE_TILING_FIELDS(FIELD) \
  FIELD(param0)                             \
  FIELD(param1)                             \
  FIELD(param2)                             \
  FIELD(param3)                             \
  FIELD(param4)                             \
  FIELD(param5)                             \
  FIELD(param6)                             \
  FIELD(param7)                             \
  FIELD(param8)                             \
  FIELD(param9)                             \
  FIELD(param10)                            \
  FIELD(param11)                            \
  FIELD(param12)                            \
  FIELD(param13)                            \
  FIELD(param14)                            \
  FIELD(param15)                            \
  FIELD(param16)                            \
  FIELD(param17)

struct alignas(8) ConfusionTransposeTiling {
#define VNPU_FIELD(name) uint32_t name = 0;
  VNPU_TRANSPOSE_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
};

namespace detail {

constexpr uint32_t kTileRows = 8, kRepeatFloats = 64;

// Floats of temporary memory for `rows` rows of SoftmaxFlashV2: the row itself where it is half, its statistics, and a
// repeat for the reductions (two where a row has 16 of them).
constexpr uint32_t flash_row_floats(uint32_t columns, uint32_t size, uint32_t statistics_size, bool basic_block) {
  const uint32_t block = 32 / statistics_size;
  const uint32_t repeat = basic_block && columns == 16 * kRepeatFloats ? 2 * kRepeatFloats : kRepeatFloats;
  if (size == sizeof(float)) return block + repeat;
  return columns + (basic_block ? block : 2 * block) + repeat;
}

// Of `rows` rows those that a piece takes: whole groups of eight that divide them, of fewer than 256 repeats.
constexpr uint32_t whole_groups(uint32_t split, uint32_t rows, uint32_t columns) {
  if (split <= kTileRows || rows % kTileRows != 0 || columns % kRepeatFloats != 0) return split;
  split -= split % kTileRows;
  while (rows % split != 0) split -= kTileRows;
  while (split * columns >= 256 * kRepeatFloats) split /= 2;
  return split;
}

// All fields of rows that are cut into pieces of `split`, `block` elements for each row's statistics.
constexpr SoftMaxTiling cut_rows(uint32_t rows, uint32_t columns, uint32_t split, uint32_t block) {
  SoftMaxTiling t;
  const uint32_t tail = split ? rows % split : 0;
  t.srcM = t.outMaxM = rows;
  t.srcK = t.splitK = columns;
  t.srcSize = rows * columns;
  t.outMaxK = t.reduceK = block;
  t.outMaxSize = rows * block;
  t.splitM = t.reduceM = split;
  t.splitSize = split * columns;
  t.reduceSize = split * block;
  t.rangeM = split ? rows / split : 0;
  t.tailM = tail;
  t.tailSplitSize = tail * columns;
  t.tailReduceSize = tail * block;
  return t;
}

// Floats of temporary memory for a row of SoftmaxFlash, the first form, and of SoftMax: with an update two rows.
constexpr uint32_t first_flash_floats(uint32_t columns, uint32_t size, bool update) {
  const uint32_t block = 32 / size;
  return update ? 4 * block + 2 * columns : block + columns + kRepeatFloats;
}
// The same of SoftmaxGrad; `front`: the sums alone. Half is kept as floats, and the products.
constexpr uint32_t grad_row_floats(uint32_t columns, uint32_t size, bool front) {
  const uint32_t block = 32 / size;
  if (size == 2) return 2 * block + 3 * columns + kRepeatFloats;
  return (front ? 1 : 2) * block + columns + kRepeatFloats;
}

// Rows in pieces of as many as fit into `floats`, `row_floats` each.
constexpr SoftMaxTiling row_tiling(uint32_t rows, uint32_t columns, uint32_t block, uint32_t floats,
                                   uint32_t row_floats) {
  if (rows == 0 || columns == 0 || row_floats == 0) return {};
  uint32_t split = floats / row_floats;
  if (split > rows) split = rows;
  if (split < rows && split > kTileRows) split -= split % kTileRows;
  return cut_rows(rows, columns, whole_groups(split, rows, columns), block);
}

// The tiling of SoftmaxFlashV2 with `floats` of temporary memory; `narrow`: one element of statistics for each row.
constexpr SoftMaxTiling flash_tiling(uint32_t rows, uint32_t columns, uint32_t size, uint32_t statistics_size,
                                     uint32_t floats, bool basic_block, bool narrow) {
  if (rows == 0 || columns == 0 || size == 0 || statistics_size == 0) return {};
  basic_block = basic_block && columns % kRepeatFloats == 0 && rows % kTileRows == 0;
  uint32_t split = floats / flash_row_floats(columns, size, statistics_size, basic_block);
  if (split > rows) split = rows;
  if (basic_block) split = whole_groups(split, rows, columns);
  const uint32_t group = narrow && size == 2 ? 2 * kTileRows : kTileRows;
  if (split < rows && split > group) split -= split % group;
  return cut_rows(rows, columns, split, 32 / statistics_size);
}

}  // namespace detail
}  // namespace AscendC::tiling
