// Rows of half, one after another, a share of them to each core: Softmax and LayerNorm of rows of COLUMNS, a row's sum,
// or a row filled with one element. Queues hold one tensor and have two buffers. Tiling data, read by the scalar unit:
// rows of a core, of the last core (SOFTMAX, LAYERNORM); all rows (the others, whose rest goes to the first cores).
//   OP       SOFTMAX, LAYERNORM, SUM, FILL
//   COLUMNS  of a row
#include "kernel_operator.h"

using namespace AscendC;

enum Op { SOFTMAX, LAYERNORM, SUM, FILL };
constexpr int kOp = OP;
constexpr uint32_t n = COLUMNS;
constexpr uint32_t kIn = kOp == FILL ? 1 : n, kOut = kOp == SUM ? 1 : n;

class Rows {
 public:
  __aicore__ inline Rows(TPipe* pipe, GM_ADDR x, GM_ADDR y, GM_ADDR weights, GM_ADDR bias, GM_ADDR tiling) {
    GlobalTensor<uint32_t> words;
    words.SetGlobalBuffer((__gm__ uint32_t*)tiling, 2);
    const uint32_t core = GetBlockIdx(), cores = GetBlockNum(), first = words.GetValue(0), second = words.GetValue(1);
    if (kOp == SOFTMAX || kOp == LAYERNORM) {
      row_ = core * first;
      rows_ = core + 1 < cores ? first : second;
    } else {
      const uint32_t each = first / cores, rest = first - each * cores;
      row_ = core * each + (core < rest ? core : rest);
      rows_ = each + (core < rest);
    }
    x_.SetGlobalBuffer((__gm__ half*)x);
    y_.SetGlobalBuffer((__gm__ half*)y);
    pipe->InitBuffer(in_, 2, kIn * sizeof(half));
    pipe->InitBuffer(out_, 2, kOut * sizeof(half));
    if (kOp == SUM) pipe->InitBuffer(rest_, n * sizeof(half));
    if (kOp == SOFTMAX || kOp == LAYERNORM) {
      pipe->InitBuffer(floats_, n * sizeof(float));
      pipe->InitBuffer(result_, n * sizeof(float));
      pipe->InitBuffer(one_, sizeof(float));
      pipe->InitBuffer(rest_, n * sizeof(float));
    }
    if (kOp == LAYERNORM) Weights(pipe, weights, bias);
  }

  __aicore__ inline void Process() {
    for (uint32_t row = row_; row < row_ + rows_; row++) {
      LocalTensor<half> x = in_.AllocTensor<half>();
      DataCopyPad(x, x_[row * kIn], DataCopyExtParams(1, kIn * sizeof(half), 0, 0, 0),
                  DataCopyPadExtParams<half>(false, 0, 0, static_cast<half>(0)));
      in_.EnQue(x);
      x = in_.DeQue<half>();
      if constexpr (kOp == SOFTMAX || kOp == LAYERNORM) {
        LocalTensor<float> to = result_.Get<float>(), from = floats_.Get<float>();
        Cast(from, x, RoundMode::CAST_NONE, n);
        in_.FreeTensor(x);
        kOp == SOFTMAX ? Softmax(to, from) : LayerNorm(to, from);
        LocalTensor<half> y = out_.AllocTensor<half>();
        Cast(y, to, RoundMode::CAST_RINT, n);
        Store(y, row);
      } else {
        LocalTensor<half> y = out_.AllocTensor<half>();
        if constexpr (kOp == FILL) Duplicate(y, x.GetValue(0), n);
        if constexpr (kOp == SUM) ReduceSum<half>(y, x, rest_.Get<half>(), n);
        out_.EnQue(y);
        in_.FreeTensor(x);
        Store(out_.DeQue<half>(), row);
      }
    }
  }

 private:
  __aicore__ inline void Store(LocalTensor<half> y, uint32_t row) {
    DataCopyPad(y_[row * kOut], y, DataCopyExtParams(1, kOut * sizeof(half), 0, 0, 0));
    out_.FreeTensor(y);
  }

  // Through the scalar unit, one by one.
  __aicore__ inline void Weights(TPipe* pipe, GM_ADDR weights, GM_ADDR bias) {
    pipe->InitBuffer(weights_, n * sizeof(float));
    pipe->InitBuffer(bias_, n * sizeof(float));
    pipe->InitBuffer(halves_, 2 * n * sizeof(half));
    pipe->InitBuffer(spare_, n * sizeof(float));
    LocalTensor<float> w = weights_.Get<float>(), b = bias_.Get<float>();
    LocalTensor<half> halves = halves_.Get<half>();
    GlobalTensor<half> from;
    from.SetGlobalBuffer((__gm__ half*)weights, n);
    DataCopy(halves, from, n);
    Cast(w, halves, RoundMode::CAST_NONE, n);
    from.SetGlobalBuffer((__gm__ half*)bias, n);
    DataCopy(halves[n], from, n);
    for (uint32_t i = 0; i < n; i++) {
      w.SetValue(i, static_cast<float>(halves.GetValue(i)));
      b.SetValue(i, static_cast<float>(halves.GetValue(n + i)));
    }
  }

  __aicore__ inline void Softmax(LocalTensor<float>& to, LocalTensor<float>& from) {
    LocalTensor<float> one = one_.Get<float>(), rest = rest_.Get<float>();
    ReduceMax<float>(one, from, rest, n, false);
    Adds(to, from, -one.GetValue(0), n);
    Exp(to, to, n);
    ReduceSum<float>(one, to, rest, n);
    Muls(to, to, 1.0f / one.GetValue(0), n);
  }

  __aicore__ inline void LayerNorm(LocalTensor<float>& to, LocalTensor<float>& from) {
    LocalTensor<float> one = one_.Get<float>(), rest = rest_.Get<float>(), spare = spare_.Get<float>();
    ReduceSum<float>(one, from, spare, n);
    Adds(to, from, -one.GetValue(0) * (1.0f / n), n);
    Mul(spare, to, to, n);
    ReduceSum<float>(one, spare, rest, n);
    Duplicate(rest, one.GetValue(0) * (1.0f / n) + 1e-5f, n);
    Sqrt(rest, rest, n);
    Duplicate(rest, 1.0f / rest.GetValue(0), n);
    Mul(to, to, rest, n);
    Mul(to, to, weights_.Get<float>(), n);
    Add(to, to, bias_.Get<float>(), n);
  }

  GlobalTensor<half> x_, y_;
  TQue<TPosition::VECIN, 1> in_;
  TQue<TPosition::VECOUT, 1> out_;
  TBuf<TPosition::VECCALC> floats_, result_, one_, rest_, weights_, bias_, halves_, spare_;
  uint32_t row_, rows_;
};

extern "C" __global__ __aicore__ void one_row_at_a_time(GM_ADDR x, GM_ADDR y, GM_ADDR weights, GM_ADDR bias,
                                                        GM_ADDR tiling) {
  TPipe pipe;
  Rows op(&pipe, x, y, weights, bias, tiling);
  op.Process();
}
