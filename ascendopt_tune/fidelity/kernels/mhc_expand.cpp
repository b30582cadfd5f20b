// half rows [rows, columns] copied to [rows, copies, columns], or with BACKWARD [rows, copies, columns] summed over the
// copies, in float, to [rows, columns]. An operator with tiling data; rows are shared out, rows_per_core to each core.
//   BATCH     forward: rows that are read before one barrier for all of them; twice as many buffers
//   BACKWARD  1: sums, through queues of two buffers
//   EMPTY     1: tiling data, a TPipe, and the end
#include "kernel_operator.h"
#include "tiling.h"

#ifndef BATCH
#define BATCH 1
#endif
#ifndef BACKWARD
#define BACKWARD 0
#endif
#ifndef EMPTY
#define EMPTY 0
#endif

using namespace AscendC;

struct Tiling {
  uint32_t rows, columns, copies, rows_per_core, rest[7];  // 11 words are read
};

class Expand {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR z, const Tiling& tiling) {
    t_ = tiling;
    x_.SetGlobalBuffer((__gm__ half*)x, static_cast<uint64_t>(t_.rows) * t_.columns * (BACKWARD ? t_.copies : 1));
    z_.SetGlobalBuffer((__gm__ half*)z, static_cast<uint64_t>(t_.rows) * t_.columns * (BACKWARD ? 1 : t_.copies));
    first_ = GetBlockIdx() * t_.rows_per_core;
    last_ = first_ + t_.rows_per_core < t_.rows ? first_ + t_.rows_per_core : t_.rows;
#if BACKWARD
    pipe_.InitBuffer(in_, 2, t_.columns * sizeof(half));
    pipe_.InitBuffer(out_, 2, t_.columns * sizeof(half));
    pipe_.InitBuffer(sum_, t_.columns * sizeof(float));
    pipe_.InitBuffer(wide_, t_.columns * sizeof(float));
#else
    for (uint32_t i = 0; i < 2 * BATCH; i++) pipe_.InitBuffer(ring_[i], t_.columns * sizeof(half));
#endif
  }

  __aicore__ inline void Process() {
    if (first_ >= last_) return;
#if BACKWARD
    for (uint32_t row = first_; row < last_; row++) Sum(row);
#else
    uint32_t slot = 0;
    for (uint32_t row = first_; row < last_; row += BATCH) {
      const uint32_t n = last_ - row < BATCH ? last_ - row : BATCH;
      for (uint32_t i = 0; i < n; i++) Read(ring_[(slot + i) % (2 * BATCH)].Get<half>(), row + i);
      PipeBarrier<PIPE_ALL>();
      for (uint32_t i = 0; i < n; i++) {
        LocalTensor<half> from = ring_[(slot + i) % (2 * BATCH)].Get<half>();
        for (uint32_t k = 0; k < t_.copies; k++)
          DataCopyPad(z_[(static_cast<uint64_t>(row + i) * t_.copies + k) * t_.columns], from, Piece());
      }
      slot += n;
    }
#endif
  }

 private:
  __aicore__ inline DataCopyExtParams Piece() const {
    return {1, static_cast<uint32_t>(t_.columns * sizeof(half)), 0, 0, 0};
  }

  __aicore__ inline void Read(const LocalTensor<half>& to, uint64_t row) {
    DataCopyPad(to, x_[row * t_.columns], Piece(), DataCopyPadExtParams<half>(false, 0, 0, 0));
  }

  // The copy of the next row is under way while this one is added.
  __aicore__ inline void Fetch(uint64_t row) {
    LocalTensor<half> to = in_.AllocTensor<half>();
    Read(to, row);
    in_.EnQue(to);
  }

  __aicore__ inline void Sum(uint32_t row) {
    const uint64_t from = static_cast<uint64_t>(row) * t_.copies;
    LocalTensor<float> sum = sum_.Get<float>();
    Duplicate(sum, 0.0f, t_.columns);
    Fetch(from);
    for (uint32_t k = 0; k < t_.copies; k++) {
      LocalTensor<half> piece = in_.DeQue<half>();
      if (k + 1 < t_.copies) Fetch(from + k + 1);
      LocalTensor<float> wide = wide_.Get<float>();
      Cast(wide, piece, RoundMode::CAST_NONE, t_.columns);
      Add(sum, sum, wide, t_.columns);
      in_.FreeTensor(piece);
    }
    LocalTensor<half> out = out_.AllocTensor<half>();
    Cast(out, sum, RoundMode::CAST_RINT, t_.columns);
    out_.EnQue(out);
    out = out_.DeQue<half>();
    DataCopyPad(z_[static_cast<uint64_t>(row) * t_.columns], out, Piece());
    out_.FreeTensor(out);
  }

  TPipe pipe_;
  TQue<QuePosition::VECIN, 2> in_;
  TQue<QuePosition::VECOUT, 2> out_;
  TBuf<TPosition::VECCALC> sum_, wide_, ring_[2 * BATCH];
  GlobalTensor<half> x_, z_;
  Tiling t_;
  uint32_t first_, last_;
};

extern "C" __global__ __aicore__ void mhc_expand(GM_ADDR x, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  Expand op;
#if !EMPTY
  op.Init(x, z, t);
  op.Process();
#endif
}
