// Sinkhorn normalization of n x n matrices (n up to 8), one after another: a row of a matrix is a block of 8 floats.
//   T     half or float, of the matrices in GM
//   TREE  0: columns are summed row by row, and every row divided by the sums; 1: three Adds on halves, one Div
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

struct Tiling {
  uint32_t batch, n, iterations;
  float epsilon;
  uint32_t cores, per_core;
};

constexpr int32_t kRows = 8, kRow = 8, kHalfRow = 16;  // elements; a row is 32 bytes
constexpr bool kHalf = sizeof(T) == 2;

class Sinkhorn {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR z, const Tiling& tiling) {
    n_ = static_cast<int32_t>(tiling.n), iterations_ = tiling.iterations, epsilon_ = tiling.epsilon;
    const uint64_t total = static_cast<uint64_t>(tiling.batch) * n_ * n_;
    x_.SetGlobalBuffer((__gm__ T*)x, total);
    z_.SetGlobalBuffer((__gm__ T*)z, total);
    first_ = GetBlockIdx() * tiling.per_core;
    last_ = first_ + tiling.per_core < tiling.batch ? first_ + tiling.per_core : tiling.batch;
    pipe_.InitBuffer(matrix_, kRows * kRow * sizeof(float));
    pipe_.InitBuffer(reduced_, kRows * kRow * sizeof(float));
    pipe_.InitBuffer(wide_, kRows * kRow * sizeof(float));
    pipe_.InitBuffer(sums_, kRows * kRow * sizeof(float));
    pipe_.InitBuffer(in_, kRows * kHalfRow * sizeof(T));
    pipe_.InitBuffer(out_, kRows * kHalfRow * sizeof(T));
  }

  __aicore__ inline void Process() {
    for (uint32_t i = first_; i < last_; i++) One(static_cast<uint64_t>(i) * n_ * n_);
  }

 private:
  __aicore__ inline void One(uint64_t at) {
    LocalTensor<float> m = matrix_.Get<float>(), r = reduced_.Get<float>(), w = wide_.Get<float>();
    Load(m, at);
    WholeReduceMax<float>(r, m, n_, n_, 1, 1, 1, ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    Brcb<float>(w, r, 1, BrcbRepeatParams());
    PipeBarrier<PIPE_V>();
    Sub(m, m, w, n_ * kRow);
    Exp(m, m, n_ * kRow);
    for (uint32_t i = 0; i < iterations_; i++) {
      Rows(m, r, w);
      Columns(m, w);
    }
    Store(m, at);
  }

  __aicore__ inline void Rows(const LocalTensor<float>& m, const LocalTensor<float>& r, const LocalTensor<float>& w) {
    WholeReduceSum<float>(r, m, n_, n_, 1, 1, 1);
    PipeBarrier<PIPE_V>();
    Adds(r, r, epsilon_, n_);
    Brcb<float>(w, r, 1, BrcbRepeatParams());
    PipeBarrier<PIPE_V>();
    Div(m, m, w, n_ * kRow);
  }

  __aicore__ inline void Columns(const LocalTensor<float>& m, const LocalTensor<float>& scratch) {
    LocalTensor<float> s = sums_.Get<float>();
#if TREE
    Add(scratch, m, m[4 * kRow], 4 * kRow);
    Add(scratch, scratch, scratch[2 * kRow], 2 * kRow);
    Add(s, scratch, scratch[kRow], kRow);
    PipeBarrier<PIPE_V>();
    Adds(s, s, epsilon_, kRow);
    Div(m, m, s, static_cast<uint64_t>(n_ * kRow), 1, BinaryRepeatParams(1, 1, 0, kRow, kRow, 0));
#else
    Duplicate(s, 0.0f, kRow);
    for (int32_t i = 0; i < n_; i++) Add(s, s, m[i * kRow], kRow);
    PipeBarrier<PIPE_V>();
    Adds(s, s, epsilon_, kRow);
    for (int32_t i = 0; i < n_; i++) Div(m[i * kRow], m[i * kRow], s, kRow);
#endif
  }

  __aicore__ inline DataCopyExtParams Piece() const { return {1, static_cast<uint32_t>(n_ * sizeof(T)), 0, 0, 0}; }

  __aicore__ inline void Load(const LocalTensor<float>& m, uint64_t at) {
    Duplicate(m, -1e30f, n_ * kRow);
#if TREE
    if (n_ < kRows) Duplicate(m[n_ * kRow], 0.0f, (kRows - n_) * kRow);
#endif
    const DataCopyPadExtParams<T> no_padding(false, 0, 0, 0);
    if constexpr (kHalf) {
      LocalTensor<T> in = in_.Get<T>();
      for (int32_t i = 0; i < n_; i++) DataCopyPad(in[i * kHalfRow], x_[at + i * n_], Piece(), no_padding);
      PipeBarrier<PIPE_ALL>();
      for (int32_t i = 0; i < n_; i++) Cast(m[i * kRow], in[i * kHalfRow], RoundMode::CAST_NONE, n_);
    } else {
      for (int32_t i = 0; i < n_; i++)
        DataCopyPad(m[i * kRow].template ReinterpretCast<T>(), x_[at + i * n_], Piece(), no_padding);
    }
    PipeBarrier<PIPE_ALL>();
  }

  __aicore__ inline void Store(const LocalTensor<float>& m, uint64_t at) {
    if constexpr (kHalf) {
      LocalTensor<T> out = out_.Get<T>();
      for (int32_t i = 0; i < n_; i++) Cast(out[i * kHalfRow], m[i * kRow], RoundMode::CAST_RINT, n_);
      PipeBarrier<PIPE_ALL>();
      for (int32_t i = 0; i < n_; i++) DataCopyPad(z_[at + i * n_], out[i * kHalfRow], Piece());
    } else {
      PipeBarrier<PIPE_ALL>();
      for (int32_t i = 0; i < n_; i++) DataCopyPad(z_[at + i * n_], m[i * kRow].template ReinterpretCast<T>(), Piece());
    }
    PipeBarrier<PIPE_ALL>();
  }

  TPipe pipe_;
  TBuf<TPosition::VECCALC> matrix_, reduced_, wide_, sums_, in_, out_;
  GlobalTensor<T> x_, z_;
  int32_t n_;
  uint32_t iterations_, first_, last_;
  float epsilon_;
};

extern "C" __global__ __aicore__ void sinkhorn_single(GM_ADDR x, GM_ADDR mask, GM_ADDR z, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  Sinkhorn op;
  op.Init(x, z, t);
  op.Process();
}
