// sum = x + residual, y = sum / rms(sum) * weight, half [rows, columns], row by row in float, a barrier of all pipes
// behind every copy and one of the vector pipe behind nearly every instruction. An operator with tiling data.
//   STAGE  0: tiling data and a TPipe; 1: buffers, too; 2: everything
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

struct Tiling {
  int32_t rows, columns, aligned, alignment;
  float epsilon;
};

class AddRmsNorm {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR residual, GM_ADDR weight, GM_ADDR y, GM_ADDR sum, const Tiling& tiling,
                              TPipe& pipe) {
    t_ = tiling;
    const uint64_t total = static_cast<uint64_t>(t_.rows) * t_.columns;
    x_.SetGlobalBuffer((__gm__ half*)x, total);
    residual_.SetGlobalBuffer((__gm__ half*)residual, total);
    weight_.SetGlobalBuffer((__gm__ half*)weight, t_.columns);
    y_.SetGlobalBuffer((__gm__ half*)y, total);
    sum_.SetGlobalBuffer((__gm__ half*)sum, total);
    const int32_t each = (t_.rows + static_cast<int32_t>(GetBlockNum()) - 1) / static_cast<int32_t>(GetBlockNum());
    first_ = static_cast<int32_t>(GetBlockIdx()) * each;
    last_ = first_ + each < t_.rows ? first_ + each : t_.rows;
    const uint32_t halves = t_.aligned * sizeof(half), floats = t_.aligned * sizeof(float);
    pipe.InitBuffer(xs_, 2, halves);
    pipe.InitBuffer(residuals_, 2, halves);
    pipe.InitBuffer(ys_, 2, halves);
    pipe.InitBuffer(sums_, 2, halves);
    pipe.InitBuffer(weight_half_, halves);
    pipe.InitBuffer(weight_wide_, floats);
    pipe.InitBuffer(wide_, floats);
    pipe.InitBuffer(squares_, floats);
    pipe.InitBuffer(scalar_, 32);
    pipe.InitBuffer(work_, 32);
  }

  __aicore__ inline void Process() {
    if (first_ >= last_) return;
    LocalTensor<half> narrow = weight_half_.Get<half>();
    LocalTensor<float> weight = weight_wide_.Get<float>();
    Read(narrow, weight_, 0);
    Cast(weight, narrow, RoundMode::CAST_NONE, t_.aligned);
    PipeBarrier<PIPE_V>();
    for (int32_t row = first_; row < last_; row++) Row(static_cast<uint64_t>(row) * t_.columns, weight);
  }

 private:
  __aicore__ inline DataCopyExtParams Piece() const {
    return {1, static_cast<uint32_t>(t_.columns * sizeof(half)), 0, 0, 0};
  }

  __aicore__ inline void Read(const LocalTensor<half>& to, const GlobalTensor<half>& from, uint64_t at) {
    const DataCopyPadExtParams<half> padding(t_.columns < t_.aligned, 0, t_.aligned - t_.columns, 0);
    DataCopyPad(to, from[at], Piece(), padding);
    PipeBarrier<PIPE_ALL>();
  }

  __aicore__ inline void Write(TQue<TPosition::VECOUT, 2>& queue, const LocalTensor<float>& from,
                               const GlobalTensor<half>& to, uint64_t at) {
    LocalTensor<half> out = queue.AllocTensor<half>();
    Cast(out, from, RoundMode::CAST_NONE, t_.aligned);
    PipeBarrier<PIPE_V>();
    queue.EnQue(out);
    out = queue.DeQue<half>();
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopyPad(to[at], out, Piece());
    PipeBarrier<PIPE_ALL>();
    queue.FreeTensor(out);
  }

  // The sum of the first `n` floats; overwrites them.
  __aicore__ inline float Sum(const LocalTensor<float>& of, int32_t n) {
    LocalTensor<float> to = scalar_.Get<float>();
    SetMaskCount();
    for (; n > 64; n = (n + 7) / 8) {
      SetVectorMask<float, MaskMode::COUNTER>(n);
      BlockReduceSum<float, false>(of, of, (n + 63) / 64, MASK_PLACEHOLDER, 1, 1, 8);
    }
    SetVectorMask<float, MaskMode::COUNTER>(n);
    WholeReduceSum<float, false>(to, of, MASK_PLACEHOLDER, 1, 1, 1, 8);
    SetMaskNorm();
    ResetMask();
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    return to.GetValue(0);
  }

  __aicore__ inline void Row(uint64_t at, const LocalTensor<float>& weight) {
    const int32_t n = t_.aligned;
    LocalTensor<float> wide = wide_.Get<float>(), squares = squares_.Get<float>();
    LocalTensor<half> a = xs_.AllocTensor<half>(), b = residuals_.AllocTensor<half>();
    Read(a, x_, at);
    Read(b, residual_, at);
    xs_.EnQue(a);
    residuals_.EnQue(b);
    a = xs_.DeQue<half>();
    b = residuals_.DeQue<half>();
    Cast(wide, a, RoundMode::CAST_NONE, n);
    PipeBarrier<PIPE_ALL>();
    Cast(squares, b, RoundMode::CAST_NONE, n);
    PipeBarrier<PIPE_V>();
    Add(wide, wide, squares, n);
    PipeBarrier<PIPE_V>();
    xs_.FreeTensor(a);
    residuals_.FreeTensor(b);
    Write(sums_, wide, sum_, at);
    Mul(squares, wide, wide, n);
    PipeBarrier<PIPE_V>();
    const float mean = Sum(squares, t_.columns) / static_cast<float>(t_.columns) + t_.epsilon;
    Duplicate(squares, mean, n);
    PipeBarrier<PIPE_V>();
    Sqrt(squares, squares, n);
    PipeBarrier<PIPE_V>();
    Div(wide, wide, squares, n);
    PipeBarrier<PIPE_V>();
    Mul(wide, wide, weight, n);
    PipeBarrier<PIPE_V>();
    Write(ys_, wide, y_, at);
  }

  TQue<TPosition::VECIN, 2> xs_, residuals_;
  TQue<TPosition::VECOUT, 2> ys_, sums_;
  TBuf<TPosition::VECCALC> weight_half_, weight_wide_, wide_, squares_, scalar_, work_;
  GlobalTensor<half> x_, residual_, weight_, y_, sum_;
  Tiling t_;
  int32_t first_ = 0, last_ = 0;
};

extern "C" __global__ __aicore__ void add_rms_norm(GM_ADDR x, GM_ADDR residual, GM_ADDR weight, GM_ADDR y, GM_ADDR sum,
                                                   GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  TPipe pipe;
  AddRmsNorm op;
#if STAGE >= 1
  op.Init(x, residual, weight, y, sum, t, pipe);
#endif
#if STAGE >= 2
  op.Process();
#endif
}
