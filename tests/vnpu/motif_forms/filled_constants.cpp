// y = x / 3 where x > 1, else -1: what is divided by and compared with are tensors of one value
// case: x=float32[256,512] -> y=float32[256,512], 8 blocks
// motif: scalar-operand, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 2048, SHARE = 256 * 512 / 8;

class Thirds {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in, 2, TILE * sizeof(float));
    pipe->InitBuffer(out, 2, TILE * sizeof(float));
    pipe->InitBuffer(threeBuf, TILE * sizeof(float));
    pipe->InitBuffer(oneBuf, TILE * sizeof(float));
    pipe->InitBuffer(maskBuf, TILE);
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
    threes = threeBuf.Get<float>();
    Duplicate(threes, divisor, TILE);
  }
  __aicore__ inline void Turn(uint32_t i) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm[i * TILE], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    LocalTensor<float> ones = oneBuf.Get<float>();
    LocalTensor<uint8_t> more = maskBuf.Get<uint8_t>();
    Duplicate(ones, 1.0f, TILE);
    PipeBarrier<PIPE_V>();
    Compare(more, a, ones, CMPMODE::GT, TILE);
    Div(b, a, threes, TILE);
    PipeBarrier<PIPE_V>();
    Select(b, more, b, -1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[i * TILE], b, TILE);
    out.FreeTensor(b);
  }

 private:
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> threeBuf, oneBuf, maskBuf;
  LocalTensor<float> threes;
  GlobalTensor<float> xGm, yGm;
  float divisor = 3.0f;
};

extern "C" __global__ __aicore__ void filled_constants(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Thirds thirds;
  thirds.Init(x, y, &pipe);
  for (uint32_t i = 0; i < SHARE / TILE; i++) {
    thirds.Turn(i);
  }
}
