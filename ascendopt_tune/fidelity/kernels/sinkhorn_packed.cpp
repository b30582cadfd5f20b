// Sinkhorn normalization of float matrices n x n (n up to 8), up to 31 in one pass: a matrix is 8 rows of a block in
// UB, and a repeat of every instruction is one matrix.
//   STRIDED   n < 8: 0 a copy for every row of every matrix, 1 a copy for the i-th row of all matrices
//   BARRIERS  1: PipeBarrier<PIPE_V> between dependent steps, 0: none
#include "kernel_operator.h"
#include "tiling.h"

#if BARRIERS
#define STEP PipeBarrier<PIPE_V>()
#else
#define STEP
#endif

using namespace AscendC;

struct Tiling {
  uint32_t batch, n, iterations;
  float epsilon;
  uint32_t cores, per_core;
};

constexpr int32_t kRows = 8, kRow = 8, kMatrix = kRows * kRow, kPass = 31;  // elements; matrices
constexpr int32_t kBurst = 8;  // matrices of one copy when they lie one behind another

class Sinkhorn {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR z, const Tiling& tiling) {
    n_ = static_cast<int32_t>(tiling.n), iterations_ = tiling.iterations, epsilon_ = tiling.epsilon;
    const uint64_t total = static_cast<uint64_t>(tiling.batch) * n_ * n_;
    x_.SetGlobalBuffer((__gm__ float*)x, total);
    z_.SetGlobalBuffer((__gm__ float*)z, total);
    first_ = GetBlockIdx() * tiling.per_core;
    last_ = first_ + tiling.per_core < tiling.batch ? first_ + tiling.per_core : tiling.batch;
    pipe_.InitBuffer(matrix_, kPass * kMatrix * sizeof(float));
    pipe_.InitBuffer(reduced_, kPass * kMatrix * sizeof(float));
    pipe_.InitBuffer(wide_, kPass * kMatrix * sizeof(float));
    pipe_.InitBuffer(sums_, kPass * kMatrix * sizeof(float));
  }

  __aicore__ inline void Process() {
    for (uint32_t i = first_; i < last_; i += kPass)
      Pass(static_cast<uint64_t>(i) * n_ * n_, static_cast<int32_t>(last_ - i < kPass ? last_ - i : kPass));
  }

 private:
  __aicore__ inline void Pass(uint64_t at, int32_t g) {
    const BinaryRepeatParams whole(1, 1, 1, kRows, kRows, kRows);
    const uint64_t live = n_ * kRow;
    LocalTensor<float> m = matrix_.Get<float>(), r = reduced_.Get<float>(), w = wide_.Get<float>(),
                       s = sums_.Get<float>();
    Load(m, at, g);
    WholeReduceMax<float>(r, m, n_, kRows * g, 1, 1, 1, ReduceOrder::ORDER_ONLY_VALUE);
    STEP;
    Brcb<float>(w, r, g, BrcbRepeatParams(1, kRows));
    STEP;
    Sub(m, m, w, live, g, whole);
    Exp(m, m, live, g, UnaryRepeatParams(1, 1, kRows, kRows));
    for (uint32_t i = 0; i < iterations_; i++) {
      WholeReduceSum<float>(r, m, n_, kRows * g, 1, 1, 1);
      STEP;
      Adds(r, r, epsilon_, static_cast<uint64_t>(n_), g, UnaryRepeatParams(1, 1, 1, 1));
      Brcb<float>(w, r, g, BrcbRepeatParams(1, kRows));
      STEP;
      Div(m, m, w, live, g, whole);
      Add(w, m, m[4 * kRow], static_cast<uint64_t>(4 * kRow), g, whole);
      Add(w, w, w[2 * kRow], static_cast<uint64_t>(2 * kRow), g, whole);
      Add(s, w, w[kRow], static_cast<uint64_t>(kRow), g, BinaryRepeatParams(1, 1, 1, 1, kRows, kRows));
      STEP;
      Adds(s, s, epsilon_, static_cast<uint64_t>(kRow), g, UnaryRepeatParams(1, 1, 1, 1));
      Div(m, m, s, live, g, BinaryRepeatParams(1, 1, 0, kRows, kRows, 1));
    }
    Store(m, at, g);
  }

  __aicore__ inline uint32_t Bytes(int32_t elements) const { return static_cast<uint32_t>(elements * sizeof(float)); }

  __aicore__ inline void Load(const LocalTensor<float>& m, uint64_t at, int32_t g) {
    const DataCopyPadExtParams<float> no_padding(false, 0, 0, 0);
    for (int32_t i = 0; i < g; i++) Duplicate(m[i * kMatrix], -1e30f, kMatrix);
    if (n_ < kRows)
      for (int32_t i = 0; i < g; i++) Duplicate(m[i * kMatrix + n_ * kRow], 0.0f, (kRows - n_) * kRow);
    if (n_ == kRows) {
      for (int32_t i = 0; i < g; i += kBurst) {
        const DataCopyExtParams burst{1, Bytes((g - i < kBurst ? g - i : kBurst) * kMatrix), 0, 0, 0};
        DataCopyPad(m[i * kMatrix], x_[at + i * kMatrix], burst, no_padding);
      }
    } else {
#if STRIDED
      const DataCopyExtParams rows{static_cast<uint16_t>(g), Bytes(n_), Bytes(n_ * n_ - n_), kRows - 1, 0};
      for (int32_t row = 0; row < n_; row++) DataCopyPad(m[row * kRow], x_[at + row * n_], rows, no_padding);
#else
      const DataCopyExtParams piece{1, Bytes(n_), 0, 0, 0};
      for (int32_t i = 0; i < g; i++)
        for (int32_t row = 0; row < n_; row++)
          DataCopyPad(m[i * kMatrix + row * kRow], x_[at + (i * n_ + row) * n_], piece, no_padding);
#endif
    }
    PipeBarrier<PIPE_ALL>();
  }

  __aicore__ inline void Store(const LocalTensor<float>& m, uint64_t at, int32_t g) {
    PipeBarrier<PIPE_ALL>();
    if (n_ == kRows) {
      for (int32_t i = 0; i < g; i += kBurst) {
        const DataCopyExtParams burst{1, Bytes((g - i < kBurst ? g - i : kBurst) * kMatrix), 0, 0, 0};
        DataCopyPad(z_[at + i * kMatrix], m[i * kMatrix], burst);
      }
    } else {
#if STRIDED
      const DataCopyExtParams rows{static_cast<uint16_t>(g), Bytes(n_), kRows - 1, Bytes(n_ * n_ - n_), 0};
      for (int32_t row = 0; row < n_; row++) DataCopyPad(z_[at + row * n_], m[row * kRow], rows);
#else
      const DataCopyExtParams piece{1, Bytes(n_), 0, 0, 0};
      for (int32_t i = 0; i < g; i++)
        for (int32_t row = 0; row < n_; row++)
          DataCopyPad(z_[at + (i * n_ + row) * n_], m[i * kMatrix + row * kRow], piece);
#endif
    }
    PipeBarrier<PIPE_ALL>();
  }

  TPipe pipe_;
  TBuf<TPosition::VECCALC> matrix_, reduced_, wide_, sums_;
  GlobalTensor<float> x_, z_;
  int32_t n_;
  uint32_t iterations_, first_, last_;
  float epsilon_;
};

extern "C" __global__ __aicore__ void sinkhorn_packed(GM_ADDR x, GM_ADDR mask, GM_ADDR z, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  Sinkhorn op;
  op.Init(x, z, t);
  op.Process();
}
