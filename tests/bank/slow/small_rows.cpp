// y = relu(3x) for rows of 32 halves, each row by itself though they lie side by side
// case: x=float16[4096,32] -> y=float16[4096,32], 8 blocks
// class: short_vectors
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void small_rows(GM_ADDR x, GM_ADDR y) {
  constexpr int rows = 4096 / 8, cols = 32, group = 128;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, group * cols * sizeof(half));
  pipe.InitBuffer(out, 2, group * cols * sizeof(half));
  GlobalTensor<half> src, dst;
  src.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * rows * cols);
  dst.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * rows * cols);
  for (int g = 0; g < rows / group; g++) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, src[g * group * cols], group * cols);
    in.EnQue(a);
    LocalTensor<half> v = in.DeQue<half>();
    LocalTensor<half> w = out.AllocTensor<half>();
    for (int i = 0; i < group; i++) {
      Muls(w[i * cols], v[i * cols], (half)3.0f, cols);
      Relu(w[i * cols], w[i * cols], cols);
    }
    in.FreeTensor(v);
    out.EnQue(w);
    LocalTensor<half> z = out.DeQue<half>();
    DataCopy(dst[g * group * cols], z, group * cols);
    out.FreeTensor(z);
  }
}
