// What cube cores do, as the AscendC headers ask for it: copies that make tiles, the matrix product, and results on
// their way out. A tile ("fractal") of an input has 16 rows of one 32-byte block; of a result, 16 x 16 elements.
#pragma once
#include <cstdint>

#include "types.h"

namespace vnpu {

// Rows of matrices in global memory become tiles in L1, column of tiles by column. All lengths and strides in bytes.
struct RowsToTiles {
  uint32_t matrices = 1, rows = 0;
  uint64_t row_bytes = 0;
  uint64_t row_stride = 0, matrix_stride = 0;                                // in global memory
  uint64_t tile_row_stride = 0, column_stride = 0, tiled_matrix_stride = 0;  // in L1
  bool cached = true;
};
void copy_rows_to_tiles(void* dst, const void* src, const RowsToTiles& shape, const char* api);

// Whole tiles, `repeats` of them. Strides and gaps in tiles; `start` is the first.
struct TileLoad {
  uint32_t start = 0, repeats = 0, src_stride = 0, dst_gap = 0;
  bool transpose = false;   // every tile in place, of 2-byte elements
  bool descending = false;  // from the first tile to lower addresses
};
void load_tiles(Memory to, void* dst, const void* src, const TileLoad& load, DType dtype, const char* api);
void load_tiles_from_gm(Memory to, void* dst, const void* src, const TileLoad& load, const char* api);

// Whole tiles of a matrix of which two in four elements along k are left, from L1 to L0B, and where those were, a tile
// of 128 bytes for each, to a memory that products alone read. The memory has a quarter of L0B's bytes, and a tile's
// place in it is a quarter of its place there.
void load_tiles_and_places(void* dst, const void* src, const void* places, uint32_t start, uint32_t repeats,
                           const char* api);

// Squares of tiles, transposed: 16 x 16 elements of 2 bytes (one tile), 16 x 16 of 4 (two tiles side by side) or 32 x
// 32 of 1 (two tiles, one below the other). `start` and `src_stride` in squares; `dst_gap` between the first tiles of
// squares, `tile_gap` between the tiles of one, from end to start, in tiles.
struct SquareLoad {
  uint32_t start = 0, repeats = 0, src_stride = 0, dst_gap = 0, tile_gap = 0;
  bool descending = false;
};
void load_squares(Memory to, void* dst, const void* src, const SquareLoad& load, DType dtype, const char* api);

// `repeats` runs of `blocks` blocks of `value`, `gap` blocks between them. A block is 32 bytes in L1, a tile elsewhere.
void fill_blocks(Memory to, void* dst, uint32_t repeats, uint32_t blocks, uint32_t gap, uint32_t value,
                 uint32_t element_bytes, const char* api);

// L1 to the table of biases or of the outgoing pipe: pieces of `bytes` at the destination; strides in bytes.
struct TableCopy {
  uint32_t pieces = 1;
  uint64_t bytes = 0, src_stride = 0, dst_stride = 0;
};
void copy_to_table(Memory to, void* dst, const void* src, const TableCopy& shape, DType dst_dtype, DType src_dtype,
                   const char* api);

// C = A x B, [m, k] x [k, n], added to nothing, to what C held, or to a bias for each column.
struct Product {
  uint32_t m = 0, n = 0, k = 0;
  enum class Start : uint8_t { Zero, Old, Bias } start = Start::Zero;
  uint8_t unit_flag = 0;
  bool pairs_of_columns = false;  // 4-byte A: its tiles come in pairs
  bool rows_first = false;        // makes its tiles row by row, whatever the register says
  bool sparse = false;            // of B two in four elements along k are there, see load_tiles_and_places
};
// `bias` counts with Start::Bias; null is the table's begin.
void multiply(void* c, const void* a, const void* b, const void* bias, const Product& p, DType input, DType result,
              const char* api);

// A register: whether products make their tiles row by row (along n first) or column by column, which unit flags hand
// over in this order.
void set_rows_first(bool on);

// Registers: whether float inputs are rounded to 11 bits of fraction first, and where those go that are halfway: to the
// even neighbour, or towards zero.
void set_short_floats(bool on);
void set_short_ties_to_zero(bool on);
// The register CTRL, of which kernels change the bits of the three registers above: 46, 47, 51.
uint64_t control_register();
void set_control_register(uint64_t value, const char* api);
struct ShortFloats {
  bool on = false, ties_to_zero = false;
};

// How results become what they leave as. The `Each` kinds take a word per column from the table, the others one for
// all.
enum class Requantize : uint8_t {
  None,
  F32ToF16,
  F32ToBF16,
  I32ToF16,
  I32ToF16Each,
  F32To8,
  F32To8Each,
  I32To8,
  I32To8Each,
};
struct Outgoing {
  uint32_t m = 0, n = 0;
  uint32_t src_stride = 0;  // between columns of 16, in rows of 16 elements
  uint64_t dst_stride = 0;  // bytes: from row to row, or from column of tiles to column of tiles
  bool rows = false;        // leaves as rows; otherwise as columns of tiles
  uint32_t matrices = 1;    // with `rows`
  uint64_t src_matrix_stride = 0, dst_matrix_stride = 0;  // bytes
  Requantize how = Requantize::None;
  uint64_t word = 0;                 // of the kinds that take one for all
  bool relu = false, split = false;  // split: columns of 8 instead of 16
  uint8_t unit_flag = 0;
  bool cached = true;
};
void bring_out(void* dst, const void* src, const Outgoing& o, DType src_dtype, DType dst_dtype, const char* api);
void bring_to_l1(void* dst, const void* src, const Outgoing& o, DType src_dtype, DType dst_dtype, const char* api);

// Registers of the outgoing pipe.
void set_outgoing_words(const void* table);
void set_outgoing_word(uint64_t word);
void set_outgoing_matrices(uint32_t matrices, uint32_t src_stride_tiles, uint32_t dst_stride);
void clear_unit_flags();
struct OutgoingRegisters {
  uint64_t word = 0;
  uint32_t matrices = 1, src_stride_tiles = 0, dst_stride = 0;
};
OutgoingRegisters outgoing_registers();

}  // namespace vnpu
