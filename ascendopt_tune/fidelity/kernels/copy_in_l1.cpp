// A half matrix [ROWS, COLUMNS] read from GM into one buffer of L1, as NZ, in tiles of TILE_ROWS x TILE_COLUMNS.
//   ORDER  SPLIT    every block reads its share of the rows
//          AGAIN    the same, four times
//          QUARTERS its share in four groups of columns, each four times
//          ALL      every block reads the whole matrix past L2, all in the same order
//          TURNED   the same, every block beginning at a share of its own
#include "kernel_operator.h"

#define SPLIT 0
#define AGAIN 1
#define QUARTERS 2
#define ALL 3
#define TURNED 4

using namespace AscendC;

__aicore__ inline void ReadTiles(const LocalTensor<half>& to, const GlobalTensor<half>& from, uint32_t first_row,
                                 uint32_t rows, uint32_t first_column, uint32_t columns) {
  for (uint32_t row = first_row; row < first_row + rows; row += TILE_ROWS) {
    for (uint32_t column = first_column; column < first_column + columns; column += TILE_COLUMNS) {
      const uint32_t left = first_column + columns - column, n = left < TILE_COLUMNS ? left : TILE_COLUMNS;
      const Nd2NzParams tile(1, TILE_ROWS, n, 0, COLUMNS, TILE_ROWS, 1, 0);
      DataCopy(to, from[row * COLUMNS + column], tile);
    }
  }
}

extern "C" __global__ __aicore__ void copy_in_l1(GM_ADDR x) {
  GlobalTensor<half> from;
  from.SetGlobalBuffer((__gm__ half*)x, ROWS * COLUMNS);
  LocalTensor<half> to(TPosition::A1, 0, TILE_ROWS * TILE_COLUMNS);
  const uint32_t blocks = GetBlockNum(), block = GetBlockIdx(), share = ROWS / blocks;
#if ORDER == SPLIT
  ReadTiles(to, from, block * share, share, 0, COLUMNS);
#elif ORDER == AGAIN
  for (uint32_t i = 0; i < 4; i++) ReadTiles(to, from, block * share, share, 0, COLUMNS);
#elif ORDER == QUARTERS
  for (uint32_t i = 0; i < 16; i++) ReadTiles(to, from, block * share, share, i / 4 * (COLUMNS / 4), COLUMNS / 4);
#else
  from.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
  for (uint32_t i = 0; i < blocks; i++)
    ReadTiles(to, from, (ORDER == TURNED ? (i + block) % blocks : i) * share, share, 0, COLUMNS);
#endif
  PipeBarrier<PIPE_ALL>();
}
