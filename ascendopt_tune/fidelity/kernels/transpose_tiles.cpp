// Matrices [m, n] to [n, m] in tiles: rows of the source into UB, turned there, rows of the result out of it; two slots
// on either side.
//   T      type of an element
//   WORDS  words of the tiling data
//   TURN   HIGH     tiles of 16 rows, turned by one TransDataTo5HD (half, float); slots of 32 KiB
//          SQUARES  whole tiles of 16 x 16 half turned by Transpose, others and other types element by element
#include "kernel_operator.h"
#include "tiling.h"

#define HIGH 0
#define SQUARES 1

using namespace AscendC;

constexpr uint32_t kBlock = 32, kSide = 16;

struct Tiling {
  uint32_t batch, m, n, tile_m, tile_n;
  uint32_t unused[WORDS - 5];
};

__aicore__ inline uint32_t Blocks(uint32_t elements) { return (elements * sizeof(T) + kBlock - 1) / kBlock; }

class Tiles {
 public:
  __aicore__ inline Tiles(TPipe& pipe, GM_ADDR x, GM_ADDR y, const Tiling& t) : t_(t) {
    from_.SetGlobalBuffer((__gm__ T*)x);
    to_.SetGlobalBuffer((__gm__ T*)y);
    const uint32_t in = Blocks(t.tile_n) * t.tile_m, out = Blocks(t.tile_m) * t.tile_n;
    const uint32_t bytes = TURN == HIGH ? 32768 : kBlock * (in > out ? in : out);
    pipe.InitBuffer(ins_, 2, bytes);
    pipe.InitBuffer(outs_, 2, bytes);
  }

  // The tile of `high` x `wide` at [row, column] of the matrix that begins at `matrix`.
  __aicore__ inline void Turn(uint64_t matrix, uint32_t row, uint32_t column, uint32_t high, uint32_t wide) {
    LocalTensor<T> in = ins_.template AllocTensor<T>();
    DataCopyPad(in, from_[matrix + static_cast<uint64_t>(row) * t_.n + column],
                {static_cast<uint16_t>(high), static_cast<uint32_t>(wide * sizeof(T)),
                 static_cast<uint32_t>((t_.n - wide) * sizeof(T)), Blocks(t_.tile_n) - Blocks(wide), 0},
                {false, 0, 0, 0});
    ins_.EnQue(in);
    in = ins_.template DeQue<T>();
    LocalTensor<T> out = outs_.template AllocTensor<T>();
#if TURN == HIGH
    Rotate(out, in, high);
    PipeBarrier<PIPE_V>();
    outs_.EnQue(out);
    ins_.FreeTensor(in);
    out = outs_.template DeQue<T>();
#else
    const bool scalars = sizeof(T) != sizeof(half) || high != kSide || wide != kSide;
    if (scalars) {
      Meet<HardEvent::MTE2_S>();
      Elements(out, in, high, wide);
    } else {
      Square(out, in);
    }
    outs_.EnQue(out);
    out = outs_.template DeQue<T>();
    if (scalars) Meet<HardEvent::S_MTE3>();
#endif
    DataCopyPad(to_[matrix + static_cast<uint64_t>(column) * t_.m + row], out,
                {static_cast<uint16_t>(wide), static_cast<uint32_t>(high * sizeof(T)), Blocks(t_.tile_m) - Blocks(high),
                 static_cast<uint32_t>((t_.m - high) * sizeof(T)), 0});
#if TURN == SQUARES
    ins_.FreeTensor(in);
#endif
    outs_.FreeTensor(out);
  }

 private:
  template <HardEvent event>
  __aicore__ inline void Meet() {
    const auto id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
    SetFlag<event>(id);
    WaitFlag<event>(id);
  }

#if TURN == HIGH
  // Rows that aren't there are read from row 0 again.
  __aicore__ inline void Rotate(const LocalTensor<T>& out, const LocalTensor<T>& in, uint32_t high) {
    constexpr uint32_t kColumns = kBlock / sizeof(T);  // that one repeat turns
    LocalTensor<T> to[kSide], from[kSide];
    for (uint32_t i = 0; i < kSide; i++) {
      from[i] = in[(i < high ? i : 0) * t_.tile_n];
      to[i] = out[kColumns == kSide ? i * kSide : i / 2 * kSide + i % 2 * kColumns];
    }
    const uint32_t repeats = t_.tile_n / kColumns;
    TransDataTo5HDParams params(false, false, static_cast<uint8_t>(repeats), repeats == 1 ? 0 : 16, repeats > 1);
    TransDataTo5HD<T>(to, from, params);
  }
#else
  __aicore__ inline void Square(const LocalTensor<T>& out, const LocalTensor<T>& in) {
    if constexpr (sizeof(T) == sizeof(half)) Transpose(out, in);
  }

  __aicore__ inline void Elements(const LocalTensor<T>& out, const LocalTensor<T>& in, uint32_t high, uint32_t wide) {
    const uint32_t in_pitch = Blocks(t_.tile_n) * kBlock / sizeof(T),
                   out_pitch = Blocks(t_.tile_m) * kBlock / sizeof(T);
    for (uint32_t i = 0; i < high; i++)
      for (uint32_t j = 0; j < wide; j++) out.SetValue(j * out_pitch + i, in.GetValue(i * in_pitch + j));
  }
#endif

  TQue<TPosition::VECIN, 2> ins_;
  TQue<TPosition::VECOUT, 2> outs_;
  GlobalTensor<T> from_, to_;
  const Tiling& t_;
};

extern "C" __global__ __aicore__ void transpose_tiles(GM_ADDR x, GM_ADDR y, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  const uint32_t high = (t.m + t.tile_m - 1) / t.tile_m, wide = (t.n + t.tile_n - 1) / t.tile_n;
  const uint32_t total = t.batch * high * wide, each = (total + GetBlockNum() - 1) / GetBlockNum();
  TPipe pipe;
  Tiles tiles(pipe, x, y, t);
  const uint32_t first = GetBlockIdx() * each;
  for (uint32_t i = first; i < first + each && i < total; i++) {
    const uint32_t row = i / wide % high * t.tile_m, column = i % wide * t.tile_n;
    tiles.Turn(static_cast<uint64_t>(i / wide / high) * t.m * t.n, row, column,
               t.m - row < t.tile_m ? t.m - row : t.tile_m, t.n - column < t.tile_n ? t.n - column : t.tile_n);
  }
}
