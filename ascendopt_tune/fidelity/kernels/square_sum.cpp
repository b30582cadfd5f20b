// Sums of squares along an axis, half or float (T), computed in float. An operator with tiling data; a share of the
// items to each core.
//   AXIS  last:   rows of `length` elements, a row at a time through queues of two buffers, ReduceSum for each
//         middle: [outer, length, inner] in tiles of `tile` columns, `chunk` rows at a time: zeros, a copy of `chunk`
//                 pieces, squares, halves added until one row is left
//         two:    [outer, length, 2nd, inner], first the inner axis `length`, then, from the workspace, the other:
//         every
//                 element of the sums in between goes through the workspace in a copy of 32 bytes of its own; one core
#include "kernel_operator.h"
#include "tiling.h"

#define last 0
#define middle 1
#define two 2

using namespace AscendC;

struct Tiling {
  uint32_t items, per_core, length, inner, tile, tiles, chunk, outer;
  uint32_t rest[TILING_WORDS - 8];
};

constexpr bool kWide = sizeof(T) == 4;  // what is read is float already

__aicore__ inline uint32_t Up(uint32_t n, uint32_t unit) { return (n + unit - 1) / unit * unit; }

class SquareSum {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR z, GM_ADDR workspace, const Tiling& tiling) {
    t_ = tiling;
    x_.SetGlobalBuffer((__gm__ T*)x);
    z_.SetGlobalBuffer((__gm__ T*)z);
    between_.SetGlobalBuffer((__gm__ float*)workspace);
    first_ = GetBlockIdx() * t_.per_core;
    end_ = first_ + t_.per_core < t_.items ? first_ + t_.per_core : t_.items;
#if AXIS == last
    const uint32_t n = Up(t_.length, 16);
    pipe_.InitBuffer(in_, 2, n * sizeof(T));
    if constexpr (!kWide) pipe_.InitBuffer(wide_, n * sizeof(float));
    pipe_.InitBuffer(work_, Up((n + 63) / 64, 8) * sizeof(float));
    pipe_.InitBuffer(sum_, 32);
    pipe_.InitBuffer(out_, 2, 32);
#elif AXIS == middle
    pipe_.InitBuffer(one_, t_.chunk * t_.tile * sizeof(T));
    if constexpr (!kWide) pipe_.InitBuffer(wide_, t_.chunk * t_.tile * sizeof(float));
    pipe_.InitBuffer(sum_, t_.tile * sizeof(float));
    pipe_.InitBuffer(part_, t_.tile * sizeof(float));
    pipe_.InitBuffer(narrow_, t_.tile * sizeof(T));
    pipe_.InitBuffer(work_, 32);
#else
    pipe_.InitBuffer(one_, 256);
    pipe_.InitBuffer(wide_, 256);
    pipe_.InitBuffer(sum_, 256);
    pipe_.InitBuffer(part_, 256);
    pipe_.InitBuffer(work_, 4096);
#endif
  }

  __aicore__ inline void Process() {
#if AXIS == last
    for (uint32_t row = first_; row < end_; row++) Row(row);
#elif AXIS == middle
    for (uint32_t item = first_; item < end_; item++) Tile(item / t_.tiles, item % t_.tiles * t_.tile);
#else
    Inner();
    Outer();
#endif
  }

 private:
  __aicore__ inline DataCopyExtParams Piece(uint32_t bytes) const { return {1, bytes, 0, 0, 0}; }

#if AXIS == last
  __aicore__ inline void Row(uint64_t row) {
    LocalTensor<T> a = in_.AllocTensor<T>();
    DataCopyPad(a, x_[row * t_.length], Piece(t_.length * sizeof(T)), DataCopyPadExtParams<T>(false, 0, 0, 0));
    in_.EnQue(a);
    a = in_.DeQue<T>();
    LocalTensor<T> out = out_.AllocTensor<T>();
    LocalTensor<float> work = work_.Get<float>();
    if constexpr (kWide) {
      Mul(a, a, a, t_.length);
      ReduceSum<float>(out.template ReinterpretCast<float>(), a.template ReinterpretCast<float>(), work, t_.length);
    } else {
      LocalTensor<float> wide = wide_.Get<float>(), sum = sum_.Get<float>();
      Cast(wide, a, RoundMode::CAST_NONE, t_.length);
      Mul(wide, wide, wide, t_.length);
      ReduceSum<float>(sum, wide, work, t_.length);
      PipeBarrier<PIPE_V>();
      Cast(out, sum, RoundMode::CAST_RINT, 8);
    }
    out_.EnQue(out);
    in_.FreeTensor(a);
    out = out_.DeQue<T>();
    DataCopyPad(z_[row], out, Piece(sizeof(T)));
    out_.FreeTensor(out);
  }
#elif AXIS == middle
  // Adds the rows of `n`, a power of two at the end, half to half; the first row holds the sum.
  __aicore__ inline void Fold(const LocalTensor<float>& of, const LocalTensor<float>& to, uint32_t n) {
    uint32_t power = 1;
    while (power * 2 <= n) power *= 2;
    SetMaskCount();
    if (n > power) {
      SetVectorMask<float, MaskMode::COUNTER>(0, (n - power) * t_.tile);
      Add<float, false>(of, of, of[power * t_.tile], MASK_PLACEHOLDER, 1, BinaryRepeatParams());
      PipeBarrier<PIPE_V>();
    }
    while (power > 1) {
      power /= 2;
      SetVectorMask<float, MaskMode::COUNTER>(0, power * t_.tile);
      Add<float, false>(of, of, of[power * t_.tile], MASK_PLACEHOLDER, 1, BinaryRepeatParams());
      PipeBarrier<PIPE_V>();
    }
    SetVectorMask<float, MaskMode::COUNTER>(0, t_.tile);
    Adds<float, false>(to, of, 0.0f, MASK_PLACEHOLDER, 1, UnaryRepeatParams());
    PipeBarrier<PIPE_V>();
    SetMaskNorm();
    ResetMask();
  }

  __aicore__ inline void Tile(uint64_t outer, uint32_t column) {
    const uint32_t n = t_.inner - column < t_.tile ? t_.inner - column : t_.tile;
    const uint32_t gap = t_.tile * sizeof(T) / 32 - Up(n * sizeof(T), 32) / 32;
    LocalTensor<float> sum = sum_.Get<float>(), part = part_.Get<float>();
    Duplicate(sum, 0.0f, t_.tile);
    PipeBarrier<PIPE_V>();
    for (uint32_t row = 0; row < t_.length; row += t_.chunk) {
      const uint32_t rows = t_.length - row < t_.chunk ? t_.length - row : t_.chunk;
      LocalTensor<T> a = one_.Get<T>();
      Duplicate(a, static_cast<T>(0), rows * t_.tile);
      PipeBarrier<PIPE_ALL>();
      const DataCopyExtParams pieces{static_cast<uint16_t>(rows), static_cast<uint32_t>(n * sizeof(T)),
                                     static_cast<uint32_t>((t_.inner - n) * sizeof(T)), gap, 0};
      DataCopyPad(a, x_[(outer * t_.length + row) * t_.inner + column], pieces,
                  DataCopyPadExtParams<T>(false, 0, 0, 0));
      PipeBarrier<PIPE_ALL>();
      LocalTensor<float> wide = a.template ReinterpretCast<float>();
      if constexpr (!kWide) {
        wide = wide_.Get<float>();
        Cast(wide, a, RoundMode::CAST_NONE, rows * t_.tile);
        PipeBarrier<PIPE_V>();
      }
      Mul(wide, wide, wide, rows * t_.tile);
      PipeBarrier<PIPE_V>();
      Fold(wide, part, rows);
      PipeBarrier<PIPE_V>();
      Add(sum, sum, part, t_.tile);
      PipeBarrier<PIPE_V>();
    }
    LocalTensor<T> out = sum.ReinterpretCast<T>();
    if constexpr (!kWide) {
      out = narrow_.Get<T>();
      Cast(out, sum, RoundMode::CAST_RINT, t_.tile);
      PipeBarrier<PIPE_V>();
    }
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(z_[outer * t_.inner + column], out, Piece(n * sizeof(T)));
    PipeBarrier<PIPE_ALL>();
  }
#else
  // [items, length, inner] to [items, inner], each result in 32 bytes of the workspace.
  __aicore__ inline void Inner() {
    LocalTensor<float> sum = sum_.Get<float>(), part = part_.Get<float>();
    LocalTensor<T> a = one_.Get<T>();
    for (uint32_t item = 0; item < t_.items; item++) {
      Duplicate(sum, 0.0f, Up(t_.inner, 8));
      PipeBarrier<PIPE_V>();
      for (uint32_t i = 0; i < t_.length; i++) {
        DataCopyPad(a, x_[(item * t_.length + i) * t_.inner], Piece(t_.inner * sizeof(T)),
                    DataCopyPadExtParams<T>(true, 0, 0, 0));
        PipeBarrier<PIPE_ALL>();
        LocalTensor<float> wide = a.template ReinterpretCast<float>();
        if constexpr (!kWide) {
          wide = wide_.Get<float>();
          Cast(wide, a, RoundMode::CAST_NONE, t_.inner);
          PipeBarrier<PIPE_V>();
        }
        Mul(wide, wide, wide, t_.inner);
        PipeBarrier<PIPE_V>();
        Add(sum, sum, wide, t_.inner);
        PipeBarrier<PIPE_V>();
      }
      for (uint32_t e = 0; e < t_.inner; e++) {
        part.SetValue(0, sum.GetValue(e));
        PipeBarrier<PIPE_V>();
        DataCopyPad(between_[(item * t_.inner + e) * 8], part, Piece(32));
        PipeBarrier<PIPE_ALL>();
      }
    }
  }

  // [outer, chunk, tile] of those to [outer, tile].
  __aicore__ inline void Outer() {
    LocalTensor<float> sum = sum_.Get<float>(), part = part_.Get<float>();
    for (uint32_t item = 0; item < t_.outer; item++) {
      Duplicate(sum, 0.0f, Up(t_.tile, 8));
      PipeBarrier<PIPE_V>();
      for (uint32_t i = 0; i < t_.chunk; i++) {
        for (uint32_t e = 0; e < t_.tile; e++) {
          DataCopyPad(part, between_[((item * t_.chunk + i) * t_.tile + e) * 8], Piece(32),
                      DataCopyPadExtParams<float>(false, 0, 0, 0));
          PipeBarrier<PIPE_ALL>();
          const float value = part.GetValue(0);
          sum.SetValue(e, sum.GetValue(e) + value);
        }
        PipeBarrier<PIPE_V>();
      }
      LocalTensor<T> out = sum.ReinterpretCast<T>();
      if constexpr (!kWide) {
        out = one_.Get<T>();
        Cast(out, sum, RoundMode::CAST_RINT, t_.tile);
        PipeBarrier<PIPE_V>();
      }
      DataCopyPad(z_[item * t_.tile], out, Piece(t_.tile * sizeof(T)));
      PipeBarrier<PIPE_ALL>();
    }
  }
#endif

  TPipe pipe_;
  TQue<QuePosition::VECIN, 2> in_;
  TQue<QuePosition::VECOUT, 2> out_;
  TBuf<TPosition::VECCALC> one_, wide_, work_, sum_, part_, narrow_;
  GlobalTensor<T> x_, z_;
  GlobalTensor<float> between_;
  Tiling t_;
  uint32_t first_, end_;
};

extern "C" __global__ __aicore__ void square_sum(GM_ADDR x, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  SquareSum op;
  op.Init(x, z, workspace, t);
  op.Process();
}
