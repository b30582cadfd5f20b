// y = x - mean of its row; the mean goes through the scalar unit
// case: x=float32[512,512] -> y=float32[512,512], 8 blocks
// class: other:scalar_roundtrip
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COLS = 512, ROWS = 64;

class MeanByRow {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * COLS);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * COLS);
    pipe.InitBuffer(in, 2, COLS * sizeof(float));
    pipe.InitBuffer(out, 2, COLS * sizeof(float));
    pipe.InitBuffer(sumBuf, 32);
    pipe.InitBuffer(workBuf, COLS * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (int32_t r = 0; r < ROWS; r++) {
      CopyIn(r);
      Compute();
      CopyOut(r);
    }
  }

 private:
  __aicore__ inline void CopyIn(int32_t r) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[r * COLS], COLS);
    in.EnQue(a);
  }
  __aicore__ inline void Compute() {
    LocalTensor<float> a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    LocalTensor<float> sum = sumBuf.Get<float>();
    LocalTensor<float> work = workBuf.Get<float>();
    ReduceSum(sum, a, work, COLS);
    float mean = sum.GetValue(0) / COLS;
    Adds(b, a, -mean, COLS);
    out.EnQue(b);
    in.FreeTensor(a);
  }
  __aicore__ inline void CopyOut(int32_t r) {
    LocalTensor<float> b = out.DeQue<float>();
    DataCopy(yGm[r * COLS], b, COLS);
    out.FreeTensor(b);
  }
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> sumBuf, workBuf;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void mean_by_row(GM_ADDR x, GM_ADDR y) {
  MeanByRow op;
  op.Init(x, y);
  op.Process();
}
