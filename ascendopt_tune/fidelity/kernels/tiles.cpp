// y of up to four tensors, element by element, a share to each core in pieces of 8192, through queues that hold one
// tensor and have two buffers. The share is read from the tiling data by the scalar unit: elements of a core, of the
// last core.
//   OP  RELU, MUL, ADD4 of half; NOT, OR of bytes, by way of half
#include "kernel_operator.h"

using namespace AscendC;

enum Op { RELU, MUL, ADD4, NOT, OR };
constexpr uint32_t kPiece = 8192;
constexpr int kInputs = OP == ADD4 ? 4 : OP == MUL || OP == OR ? 2 : 1;
constexpr bool kBytes = OP == NOT || OP == OR;

template <bool bytes>
struct Element {
  using Type = half;
};
template <>
struct Element<true> {
  using Type = uint8_t;
};
using T = Element<kBytes>::Type;

class Tiles {
 public:
  __aicore__ inline Tiles(TPipe* pipe, GM_ADDR y, GM_ADDR tiling) {
    GlobalTensor<uint32_t> words;
    words.SetGlobalBuffer((__gm__ uint32_t*)tiling, 2);
    const uint32_t share = words.GetValue(0), core = GetBlockIdx();
    count_ = core + 1 < GetBlockNum() ? share : words.GetValue(1);
    first_ = core * share;
    y_.SetGlobalBuffer((__gm__ T*)y + first_, count_);
    for (int i = 0; i < kInputs; i++) pipe->InitBuffer(in_[i], 2, kPiece * sizeof(T));
    pipe->InitBuffer(out_, 2, kPiece * sizeof(T));
    if (OP != RELU && OP != MUL) pipe->InitBuffer(halves_, 3 * kPiece * sizeof(half));
  }

  __aicore__ inline void Input(int i, GM_ADDR x) { x_[i].SetGlobalBuffer((__gm__ T*)x + first_, count_); }

  __aicore__ inline void Process() {
    for (uint32_t at = 0; at < count_; at += kPiece) {
      const uint32_t n = count_ - at < kPiece ? count_ - at : kPiece;
      const DataCopyExtParams all(1, n * sizeof(T), 0, 0, 0);
      for (int i = 0; i < kInputs; i++) {
        LocalTensor<T> x = in_[i].template AllocTensor<T>();
        DataCopyPad(x, x_[i][at], all, DataCopyPadExtParams<T>(false, 0, 0, static_cast<T>(0)));
        in_[i].EnQue(x);
      }
      Piece(n);
      LocalTensor<T> y = out_.DeQue<T>();
      DataCopyPad(y_[at], y, all);
      out_.FreeTensor(y);
    }
  }

 private:
  __aicore__ inline void Piece(uint32_t n) {
    LocalTensor<T> x[kInputs];
    for (int i = 0; i < kInputs; i++) x[i] = in_[i].template DeQue<T>();
    LocalTensor<T> y = out_.AllocTensor<T>();
    Compute(y, x, n);
    out_.EnQue(y);
    for (int i = 0; i < kInputs; i++) in_[i].FreeTensor(x[i]);
  }

  __aicore__ inline void Compute(LocalTensor<half>& y, LocalTensor<half>* x, uint32_t n) {
    if constexpr (OP == RELU) Relu(y, x[0], n);
    if constexpr (OP == MUL) Mul(y, x[0], x[kInputs > 1], n);
    if constexpr (OP == ADD4) {
      LocalTensor<half> sum = halves_.Get<half>();
      Add(sum, x[0], x[1], n);
      Add(sum, sum, x[2], n);
      Add(y, sum, x[3], n);
    }
  }

  __aicore__ inline void Compute(LocalTensor<uint8_t>& y, LocalTensor<uint8_t>* x, uint32_t n) {
    LocalTensor<half> a = halves_.Get<half>(), b = a[kPiece], c = b[kPiece];
    Cast(a, x[0], RoundMode::CAST_NONE, n);
    if constexpr (OP == OR) {
      Cast(b, x[kInputs - 1], RoundMode::CAST_NONE, n);
      Max(c, a, b, n);
    } else {
      Duplicate(b, static_cast<half>(1.0f), n);
      Sub(c, b, a, n);
    }
    Cast(y, c, RoundMode::CAST_NONE, n);
  }

  GlobalTensor<T> x_[kInputs], y_;
  TQue<TPosition::VECIN, 1> in_[kInputs];
  TQue<TPosition::VECOUT, 1> out_;
  TBuf<TPosition::VECCALC> halves_;
  uint32_t first_, count_;
};

// The first kInputs of four tensors are read.
extern "C" __global__ __aicore__ void tiles(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR d, GM_ADDR y, GM_ADDR tiling) {
  TPipe pipe;
  Tiles op(&pipe, y, tiling);
  GM_ADDR all[4] = {a, b, c, d};
  for (int i = 0; i < kInputs; i++) op.Input(i, all[i]);
  op.Process();
}
