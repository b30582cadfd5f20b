// Up to 256 inputs [rows, length * unit bytes] beside each other in one output, all copied as bytes; no vector work.
// A block owns a slice of the rows and a column of the output (an output that isn't aligned has one column), and copies
// what of each input lies in it, through two slots of UB. `list` is the descriptor of the inputs: its pointers are read
// where an operator would, but the inputs stand in `x`, each where a caching allocator would have put it.
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr uint32_t kSlot = 65536, kBlock = 32, kPage = 512;

// `count` lengths, `repeats` times.
struct Run {
  uint32_t repeats, count, length[8];
};

struct Tiling {
  uint32_t rows, unit, slices, columns, column_bytes, runs;
  Run run[3];
  uint32_t unused[489];  // as large as tiling data with a length and an offset of 256 inputs: 2100 bytes
};

class Copier {
 public:
  __aicore__ inline explicit Copier(TPipe& pipe, GM_ADDR x, GM_ADDR y) {
    from_.SetGlobalBuffer((__gm__ uint8_t*)x);
    to_.SetGlobalBuffer((__gm__ uint8_t*)y);
    pipe.InitBuffer(slots_, 2, kSlot);
  }

  // `rows` pieces of `bytes`, which begin `from_pitch` and `to_pitch` bytes apart: as many as fit at a time.
  __aicore__ inline void Copy(uint64_t from, uint64_t to, uint32_t rows, uint64_t bytes, uint64_t from_pitch,
                              uint64_t to_pitch) {
    if (bytes > kSlot) {
      for (uint32_t row = 0; row < rows; row++)
        for (uint64_t at = 0; at < bytes; at += kSlot)
          Tile(from + row * from_pitch + at, to + row * to_pitch + at, 1, bytes - at < kSlot ? bytes - at : kSlot, 0,
               0);
      return;
    }
    const uint32_t most = kSlot / ((bytes + kBlock - 1) / kBlock * kBlock);
    for (uint32_t row = 0; row < rows; row += most)
      Tile(from + row * from_pitch, to + row * to_pitch, rows - row < most ? rows - row : most, bytes,
           from_pitch - bytes, to_pitch - bytes);
  }

 private:
  __aicore__ inline void Tile(uint64_t from, uint64_t to, uint32_t rows, uint32_t bytes, uint32_t from_gap,
                              uint32_t to_gap) {
    const auto count = static_cast<uint16_t>(rows);
    LocalTensor<uint8_t> slot = slots_.AllocTensor<uint8_t>();
    DataCopyPad(slot, from_[from], {count, bytes, from_gap, 0, 0}, {false, 0, 0, 0});
    slots_.EnQue(slot);
    slot = slots_.DeQue<uint8_t>();
    DataCopyPad(to_[to], slot, {count, bytes, 0, to_gap, 0});
    slots_.FreeTensor(slot);
  }

  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> slots_;
  GlobalTensor<uint8_t> from_, to_;
};

extern "C" __global__ __aicore__ void concat(GM_ADDR list, GM_ADDR x, GM_ADDR y, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  ListTensorDesc inputs((__gm__ void*)list);
  TPipe pipe;
  Copier copier(pipe, x, y);

  uint64_t pitch = 0;
  for (uint32_t r = 0; r < t.runs; r++)
    for (uint32_t i = 0; i < t.run[r].count; i++)
      pitch += static_cast<uint64_t>(t.run[r].repeats) * t.run[r].length[i] * t.unit;
  const uint32_t slice = GetBlockIdx() / t.columns, column = GetBlockIdx() % t.columns;
  const uint32_t first_row = t.rows * slice / t.slices, rows = t.rows * (slice + 1) / t.slices - first_row;
  const uint64_t left = static_cast<uint64_t>(column) * t.column_bytes;
  const uint64_t right = left + t.column_bytes < pitch ? left + t.column_bytes : pitch;

  uint32_t input = 0;
  uint64_t begin = 0, stands = 0;  // of the input: its first byte in a row of the output, and its place in `x`
  for (uint32_t r = 0; r < t.runs; r++) {
    for (uint32_t i = 0; i < t.run[r].repeats * t.run[r].count; i++, input++) {
      const uint64_t width = static_cast<uint64_t>(t.run[r].length[i % t.run[r].count]) * t.unit;
      const uint64_t from = begin > left ? begin : left, to = begin + width < right ? begin + width : right;
      if (from < to) {
        inputs.GetDataPtr<__gm__ uint8_t>(input);
        copier.Copy(stands + first_row * width + from - begin, first_row * pitch + from, rows, to - from, width, pitch);
      }
      begin += width;
      stands += (t.rows * width + kBlock + kPage - 1) / kPage * kPage;
    }
  }
}
