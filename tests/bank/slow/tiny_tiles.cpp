// y = abs(x) in tiles of 128 elements, though a core has 64 Ki of them
// case: x=float16[1024,512] -> y=float16[1024,512], 8 blocks
// class: small_tiles
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t SHARE = 1024 * 512 / 8;
constexpr int32_t TILE_LENGTH = 128;

class TinyTiles {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y) {
    tileLength = TILE_LENGTH;
    xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * SHARE);
    pipe.InitBuffer(in, 2, tileLength * sizeof(half));
    pipe.InitBuffer(out, 2, tileLength * sizeof(half));
  }
  __aicore__ inline void Process() {
    for (int32_t at = 0; at < SHARE; at += tileLength) {
      LocalTensor<half> a = in.AllocTensor<half>();
      DataCopy(a, xGm[at], tileLength);
      in.EnQue(a);
      a = in.DeQue<half>();
      LocalTensor<half> b = out.AllocTensor<half>();
      Abs(b, a, tileLength);
      in.FreeTensor(a);
      out.EnQue(b);
      b = out.DeQue<half>();
      DataCopy(yGm[at], b, tileLength);
      out.FreeTensor(b);
    }
  }

 private:
  int32_t tileLength;
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  GlobalTensor<half> xGm, yGm;
};

extern "C" __global__ __aicore__ void tiny_tiles(GM_ADDR x, GM_ADDR y) {
  TinyTiles op;
  op.Init(x, y);
  op.Process();
}
