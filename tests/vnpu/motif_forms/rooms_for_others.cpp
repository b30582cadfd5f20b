// y = |x|, with rooms for types that this isn't, and one for nobody
// case: x=float32[64,512] -> y=float32[64,512], 8 blocks
// motif: unneeded-buffers, 3 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 1024, SHARE = 64 * 512 / 8;

template <typename TYPE>
class Magnitude {
 public:
  __aicore__ inline Magnitude(GM_ADDR x, GM_ADDR y, TPipe& pipe) {
    from.SetGlobalBuffer((__gm__ TYPE*)x + GetBlockIdx() * SHARE, SHARE);
    to.SetGlobalBuffer((__gm__ TYPE*)y + GetBlockIdx() * SHARE, SHARE);
    pipe.InitBuffer(in, 2, TILE * sizeof(TYPE));
    pipe.InitBuffer(out, 2, TILE * sizeof(TYPE));
    pipe.InitBuffer(wide, TILE * sizeof(float));
    pipe.InitBuffer(narrow, 2, TILE * sizeof(half));
    pipe.InitBuffer(spare, TILE * sizeof(float));
  }
  __aicore__ inline void Run() {
    for (uint32_t tile = 0; tile < SHARE / TILE; tile++) {
      LocalTensor<TYPE> a = in.template AllocTensor<TYPE>();
      DataCopy(a, from[tile * TILE], TILE);
      in.EnQue(a);
      a = in.template DeQue<TYPE>();
      LocalTensor<TYPE> b = out.template AllocTensor<TYPE>();
      if constexpr (std::is_same_v<TYPE, float>) {
        Abs(b, a, TILE);
      } else if constexpr (std::is_same_v<TYPE, int8_t>) {
        OfBytes(b, a);
      } else {
        LocalTensor<float> w = wide.template Get<float>();
        Cast(w, a, RoundMode::CAST_NONE, TILE);
        Abs(w, w, TILE);
        Cast(b, w, RoundMode::CAST_RINT, TILE);
      }
      in.FreeTensor(a);
      out.EnQue(b);
      b = out.template DeQue<TYPE>();
      DataCopy(to[tile * TILE], b, TILE);
      out.FreeTensor(b);
    }
  }

 private:
  __aicore__ inline void OfBytes(LocalTensor<TYPE>& b, LocalTensor<TYPE>& a) {
    LocalTensor<half> h = narrow.template AllocTensor<half>();
    Cast(h, a, RoundMode::CAST_NONE, TILE);
    Abs(h, h, TILE);
    Cast(b, h, RoundMode::CAST_NONE, TILE);
    narrow.FreeTensor(h);
  }
  GlobalTensor<TYPE> from, to;
  TQue<QuePosition::VECIN, 1> in, narrow;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> wide, spare;
};

extern "C" __global__ __aicore__ void rooms_for_others(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Magnitude<float> magnitude(x, y, pipe);
  magnitude.Run();
}
