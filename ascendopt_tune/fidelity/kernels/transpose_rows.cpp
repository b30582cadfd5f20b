// The rows of a transposed tensor, one after another, through two slots of UB. An element of a row comes `step`
// elements behind the one before it in the source; where a row begins there follows from the dimensions around it.
//   T      type of an element
//   WORDS  words of the tiling data
// How a piece of a row comes into UB:
//   kCopied   elements that lie together, DataCopy for 32-byte blocks and DataCopyPad otherwise
//   kPadded   the same, always DataCopyPad
//   kBursts   DataCopyPad, each element a burst and in UB a block of its own
//   kScalars  the scalar unit loads each element from GM and stores it in UB
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr uint32_t kBlock = 32;
constexpr uint32_t kCopied = 0, kPadded = 1, kBursts = 2, kScalars = 3;

struct Tiling {
  uint32_t way, width, step, piece, outer;
  uint32_t extent[4], stride[4];  // of the dimensions around a row, first the outermost
  uint32_t unused[WORDS - 13];
};

__aicore__ inline uint64_t Source(const Tiling& t, uint32_t row) {
  uint64_t at = 0;
  for (uint32_t i = t.outer; i > 0; row /= t.extent[--i])
    at += static_cast<uint64_t>(row % t.extent[i - 1]) * t.stride[i - 1];
  return at;
}

class Rows {
 public:
  __aicore__ inline Rows(TPipe& pipe, GM_ADDR x, GM_ADDR y, const Tiling& t) : way_(t.way), step_(t.step) {
    from_.SetGlobalBuffer((__gm__ T*)x);
    to_.SetGlobalBuffer((__gm__ T*)y);
    pipe.InitBuffer(slots_, 2, t.piece * (way_ == kBursts ? kBlock : sizeof(T)));
  }

  __aicore__ inline void Piece(uint64_t from, uint64_t to, uint32_t n) {
    const uint32_t bytes = n * sizeof(T), gap = (step_ - 1) * sizeof(T);
    const bool blocks = way_ == kCopied && bytes % kBlock == 0;
    const DataCopyExtParams whole{1, bytes, 0, 0, 0};
    const DataCopyExtParams bursts{static_cast<uint16_t>(n), sizeof(T), gap, 0, 0};
    LocalTensor<T> slot = slots_.template AllocTensor<T>();
    if (way_ == kScalars) {
      for (uint32_t i = 0; i < n; i++) slot.SetValue(i, from_.GetValue(from + static_cast<uint64_t>(i) * step_));
    } else if (blocks) {
      DataCopy(slot, from_[from], n);
    } else {
      DataCopyPad(slot, from_[from], way_ == kBursts ? bursts : whole, {false, 0, 0, 0});
    }
    slots_.EnQue(slot);
    slot = slots_.template DeQue<T>();
    if (blocks) {
      DataCopy(to_[to], slot, n);
    } else {
      DataCopyPad(to_[to], slot, way_ == kBursts ? DataCopyExtParams{bursts.blockCount, sizeof(T), 0, 0, 0} : whole);
    }
    slots_.FreeTensor(slot);
  }

 private:
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 2> slots_;
  GlobalTensor<T> from_, to_;
  uint32_t way_, step_;
};

extern "C" __global__ __aicore__ void transpose_rows(GM_ADDR x, GM_ADDR y, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  uint32_t total = 1;
  for (uint32_t i = 0; i < t.outer; i++) total *= t.extent[i];
  const uint32_t each = (total + GetBlockNum() - 1) / GetBlockNum(), first = GetBlockIdx() * each;
  TPipe pipe;
  Rows rows(pipe, x, y, t);
  for (uint32_t row = first; row < first + each && row < total; row++) {
    const uint64_t from = Source(t, row), to = static_cast<uint64_t>(row) * t.width;
    for (uint32_t at = 0; at < t.width; at += t.piece)
      rows.Piece(from + static_cast<uint64_t>(at) * t.step, to + at, t.width - at < t.piece ? t.width - at : t.piece);
  }
}
