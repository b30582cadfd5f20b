// Inputs [rows, length bytes] beside each other in one output, copied as bytes; no vector work. Tasks go round among
// the blocks. PER says what a task is: `kRows`, some rows of one input; `kTile`, a tile of one row of one input;
// `kWholeRows`, some rows of the output, put together in UB. BUFFERS is 1 (flags) or 2 (a queue). As in concat.cpp,
// pointers are read from `list`, and the inputs stand in `x`, each where a caching allocator would have put it.
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr uint32_t kBlock = 32, kPage = 512;

enum Per { kRows, kTile, kWholeRows };

struct Tiling {
  uint32_t tile_bytes, rows, rows_of_task, inputs;
  uint32_t lengths, length[16];  // of the inputs, in turn
  uint32_t unused[505];          // as large as tiling data with a length and an offset of 128 inputs: 2104 bytes
};

// Where an input lies: `at` in `x`, `column` bytes from the left in a row of the output.
struct Input {
  uint32_t length, column;
  uint64_t at;
};

template <int kBuffers>
class Copier;

// What is copied: rows of as many bytes, how far the ends of two are apart, and where they begin.
struct Piece {
  uint64_t from, to;
  uint32_t rows, bytes, from_gap, to_gap;
};

__aicore__ inline DataCopyExtParams Params(const Piece& p, uint32_t from_gap, uint32_t to_gap) {
  return {static_cast<uint16_t>(p.rows), p.bytes, from_gap, to_gap, 0};
}

template <>
class Copier<1> {
 public:
  __aicore__ inline Copier(TPipe& pipe, uint32_t bytes) { pipe.InitBuffer(buffer_, bytes); }

  __aicore__ inline void Copy(GlobalTensor<uint8_t>& y, GlobalTensor<uint8_t>& x, const Piece& p) {
    LocalTensor<uint8_t> local = buffer_.Get<uint8_t>();
    DataCopyPad(local, x[p.from], Params(p, p.from_gap, 0), {false, 0, 0, 0});
    Meet<HardEvent::MTE2_MTE3>();
    DataCopyPad(y[p.to], local, Params(p, 0, p.to_gap));
    Meet<HardEvent::MTE3_MTE2>();
  }

  template <HardEvent kEvent>
  __aicore__ inline void Meet() {
    const auto event = static_cast<event_t>(GetTPipePtr()->FetchEventID(kEvent));
    SetFlag<kEvent>(event);
    WaitFlag<kEvent>(event);
  }

  __aicore__ inline LocalTensor<uint8_t> Buffer() { return buffer_.Get<uint8_t>(); }

 private:
  TBuf<TPosition::VECCALC> buffer_;
};

template <>
class Copier<2> {
 public:
  __aicore__ inline Copier(TPipe& pipe, uint32_t bytes) { pipe.InitBuffer(queue_, 2, bytes); }

  __aicore__ inline void Copy(GlobalTensor<uint8_t>& y, GlobalTensor<uint8_t>& x, const Piece& p) {
    LocalTensor<uint8_t> local = queue_.AllocTensor<uint8_t>();
    DataCopyPad(local, x[p.from], Params(p, p.from_gap, 0), {false, 0, 0, 0});
    queue_.EnQue(local);
    local = queue_.DeQue<uint8_t>();
    DataCopyPad(y[p.to], local, Params(p, 0, p.to_gap));
    queue_.FreeTensor(local);
  }

 private:
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 2> queue_;
};

class Tasks {
 public:
  __aicore__ inline Tasks(TPipe& pipe, GM_ADDR list, GM_ADDR x, GM_ADDR y, const Tiling& t)
      : t_(t), list_((__gm__ void*)list), copier_(pipe, t.tile_bytes) {
    x_.SetGlobalBuffer((__gm__ uint8_t*)x);
    y_.SetGlobalBuffer((__gm__ uint8_t*)y);
    for (uint32_t i = 0; i < t.lengths; i++) {
      first_[i] = round_;
      first_[i].length = t.length[i];
      round_.column += t.length[i];
      round_.at += (static_cast<uint64_t>(t.rows) * t.length[i] + kBlock + kPage - 1) / kPage * kPage;
    }
    const Input end = Find(t.inputs - 1);
    pitch_ = end.column + end.length;
  }

  // Some rows of one input: at once where they fit, else tile by tile.
  __aicore__ inline void Rows() {
    const uint32_t row_tasks = (t_.rows + t_.rows_of_task - 1) / t_.rows_of_task;
    for (uint32_t task = GetBlockIdx(); task < row_tasks * t_.inputs; task += GetBlockNum()) {
      const uint32_t first = task / t_.inputs * t_.rows_of_task;
      const uint32_t rows = t_.rows - first < t_.rows_of_task ? t_.rows - first : t_.rows_of_task;
      const Input input = Find(task % t_.inputs);
      if (rows * ((input.length + kBlock - 1) / kBlock * kBlock) <= t_.tile_bytes) {
        copier_.Copy(y_, x_, At(input, first, 0, rows, input.length));
        continue;
      }
      for (uint32_t row = first; row < first + rows; row++)
        for (uint32_t done = 0; done < input.length; done += t_.tile_bytes) Tile(input, row, done);
    }
  }

  // A tile of one row of one input.
  __aicore__ inline void Tiles() {
    const uint32_t blocks = GetBlockNum();
    uint32_t before = 0;
    for (uint32_t i = 0; i < t_.inputs; i++) {
      const Input input = Find(i);
      const uint32_t tiles = (input.length + t_.tile_bytes - 1) / t_.tile_bytes;
      for (uint32_t task = (GetBlockIdx() + blocks - before % blocks) % blocks; task < t_.rows * tiles; task += blocks)
        Tile(input, task / tiles, task % tiles * t_.tile_bytes);
      before += t_.rows * tiles;
    }
  }

#if BUFFERS == 1
  // Some rows of the output, put together in UB.
  __aicore__ inline void WholeRows() {
    LocalTensor<uint8_t> local = copier_.Buffer();
    for (uint32_t first = GetBlockIdx() * t_.rows_of_task; first < t_.rows; first += GetBlockNum() * t_.rows_of_task) {
      const uint32_t rows = t_.rows - first < t_.rows_of_task ? t_.rows - first : t_.rows_of_task;
      for (uint32_t i = 0; i < t_.inputs; i++) {
        const Input input = Find(i);
        const Piece p = At(input, first, 0, rows, input.length);
        const uint32_t gap = (static_cast<uint32_t>(pitch_) - p.bytes) / kBlock;
        DataCopyPad(local[input.column], x_[p.from], Params(p, 0, gap), {false, 0, 0, 0});
      }
      copier_.template Meet<HardEvent::MTE2_MTE3>();
      DataCopyPad(y_[first * pitch_], local, {static_cast<uint16_t>(rows), static_cast<uint32_t>(pitch_), 0, 0, 0});
      copier_.template Meet<HardEvent::MTE3_MTE2>();
    }
  }
#endif

 private:
  __aicore__ inline Input Find(uint32_t number) {
    list_.GetDataPtr<__gm__ uint8_t>(number);
    const uint32_t rounds = number / t_.lengths;
    const Input& first = first_[number % t_.lengths];
    return {first.length, first.column + rounds * round_.column, first.at + rounds * round_.at};
  }

  __aicore__ inline Piece At(const Input& input, uint32_t row, uint32_t done, uint32_t rows, uint32_t bytes) {
    return {input.at + static_cast<uint64_t>(row) * input.length + done,
            row * pitch_ + input.column + done,
            rows,
            bytes,
            input.length - bytes,
            static_cast<uint32_t>(pitch_) - bytes};
  }

  __aicore__ inline void Tile(const Input& input, uint32_t row, uint32_t done) {
    const uint32_t left = input.length - done, bytes = left < t_.tile_bytes ? left : t_.tile_bytes;
    copier_.Copy(y_, x_, At(input, row, done, 1, bytes));
  }

  const Tiling& t_;
  ListTensorDesc list_;
  GlobalTensor<uint8_t> x_, y_;
  Copier<BUFFERS> copier_;
  Input first_[16], round_ = {0, 0, 0};  // of the first inputs, one of each length, and of all of them together
  uint64_t pitch_ = 0;
};

extern "C" __global__ __aicore__ void concat_tasks(GM_ADDR list, GM_ADDR x, GM_ADDR y, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  TPipe pipe;
  Tasks op(pipe, list, x, y, t);
#if BUFFERS == 1
  if (PER == kWholeRows) return op.WholeRows();
#endif
  PER == kTile ? op.Tiles() : op.Rows();
}
