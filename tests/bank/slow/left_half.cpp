// y = relu of the left half of each row of x.
// case: x=float16[1024,512] -> y=float16[1024,256], 8 blocks
// class: small_copies
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t WIDTH = 512, HALF = 256, ROWS = 128, AT_ONCE = 16;

extern "C" __global__ __aicore__ void left_half(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  GlobalTensor<half> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * ROWS * WIDTH);
  yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * ROWS * HALF);
  pipe.InitBuffer(in, 2, AT_ONCE * HALF * sizeof(half));
  pipe.InitBuffer(out, 2, AT_ONCE * HALF * sizeof(half));
  for (int32_t first = 0; first < ROWS; first += AT_ONCE) {
    LocalTensor<half> a = in.AllocTensor<half>();
    for (int32_t i = 0; i < AT_ONCE; i++) {
      DataCopy(a[i * HALF], xGm[(first + i) * WIDTH], HALF);
    }
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>();
    Relu(b, a, AT_ONCE * HALF);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<half>();
    DataCopy(yGm[first * HALF], b, AT_ONCE * HALF);
    out.FreeTensor(b);
  }
}
