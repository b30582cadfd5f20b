// y = x * gamma in float; gamma is cast again in every turn
// case: x=float16[512,512] gamma=float16[512] -> y=float16[512,512], 8 blocks
// class: loop_invariant
#include "kernel_operator.h"
using namespace AscendC;

class GammaCastAgain {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * rows * cols);
    gammaGm.SetGlobalBuffer((__gm__ half*)gamma);
    yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * rows * cols);
    pipe.InitBuffer(in, 2, cols * sizeof(half));
    pipe.InitBuffer(out, 2, cols * sizeof(half));
    pipe.InitBuffer(gammaBuf, cols * sizeof(half));
    pipe.InitBuffer(wideBuf, cols * sizeof(float));
    pipe.InitBuffer(gammaWideBuf, cols * sizeof(float));
  }
  __aicore__ inline void Process() {
    LocalTensor<half> gammaLocal = gammaBuf.Get<half>();
    DataCopy(gammaLocal, gammaGm, cols);
    for (int r = 0; r < rows; r++) {
      LocalTensor<half> a = in.AllocTensor<half>();
      DataCopy(a, xGm[r * cols], cols);
      in.EnQue(a);
      a = in.DeQue<half>();
      LocalTensor<half> b = out.AllocTensor<half>();
      LocalTensor<float> wide = wideBuf.Get<float>();
      LocalTensor<float> gammaWide = gammaWideBuf.Get<float>();
      Cast(wide, a, RoundMode::CAST_NONE, cols);
      Cast(gammaWide, gammaLocal, RoundMode::CAST_NONE, cols);
      Mul(wide, wide, gammaWide, cols);
      Cast(b, wide, RoundMode::CAST_RINT, cols);
      in.FreeTensor(a);
      out.EnQue(b);
      b = out.DeQue<half>();
      DataCopy(yGm[r * cols], b, cols);
      out.FreeTensor(b);
    }
  }

 private:
  static constexpr int rows = 64, cols = 512;
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> gammaBuf, wideBuf, gammaWideBuf;
  GlobalTensor<half> xGm, gammaGm, yGm;
};

extern "C" __global__ __aicore__ void gamma_cast_again(GM_ADDR x, GM_ADDR gamma, GM_ADDR y) {
  GammaCastAgain op;
  op.Init(x, gamma, y);
  op.Process();
}
