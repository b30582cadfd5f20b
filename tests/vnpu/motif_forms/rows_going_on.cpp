// y = exp of the first 24 columns of x; rows come and go one by one, their places go on by a step
// case: x=float32[512,96] -> y=float32[512,24], 8 blocks
// motif: strided-copy, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 96, KEPT = 24, TILE = 16, SHARE = 512 / 8;

template <typename T>
class RowsGoingOn {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * SHARE * WIDTH);
    yGm.SetGlobalBuffer((__gm__ T*)y + GetBlockIdx() * SHARE * KEPT);
    pipe->InitBuffer(in, 2, TILE * KEPT * sizeof(T));
    pipe->InitBuffer(out, 2, TILE * KEPT * sizeof(T));
  }
  __aicore__ inline void Process() {
    for (uint32_t tile = 0; tile < SHARE; tile += TILE) {
      Load(tile);
      LocalTensor<T> a = in.template DeQue<T>();
      LocalTensor<T> b = out.template AllocTensor<T>();
      Exp(b, a, TILE * KEPT);
      in.FreeTensor(a);
      out.EnQue(b);
      Store(tile);
    }
  }

 private:
  __aicore__ inline void Load(uint32_t tile) {
    LocalTensor<T> a = in.template AllocTensor<T>();
    uint64_t from = static_cast<uint64_t>(tile) * WIDTH;
    uint32_t to = 0;
    for (uint32_t row = tile; row < tile + TILE; row++) {
      if constexpr (sizeof(T) >= 4) {
        DataCopy(a[to], xGm[from], KEPT);
      } else {
        DataCopyPad(a[to], xGm[from], {1, KEPT * sizeof(T), 0, 0, 0}, DataCopyPadExtParams<T>{false, 0, 0, 0});
      }
      from += WIDTH;
      to += KEPT;
    }
    in.EnQue(a);
  }
  __aicore__ inline void Store(uint32_t tile) {
    LocalTensor<T> b = out.template DeQue<T>();
    for (uint32_t row = 0; row < TILE; row++) {
      PipeBarrier<PIPE_MTE3>();
      DataCopyExtParams one{1, 0, 0, 0, 0};
      one.blockLen = KEPT * sizeof(T);
      DataCopyPad(yGm[(tile + row) * KEPT], b[row * KEPT], one);
    }
    out.FreeTensor(b);
  }
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  GlobalTensor<T> xGm, yGm;
};

extern "C" __global__ __aicore__ void rows_going_on(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  RowsGoingOn<float> op;
  op.Init(x, y, &pipe);
  op.Process();
}
