// y = x x in the first half of the rows, 0 in the others, where tiles are loaded to be subtracted from themselves
// case: x=float32[256,512] -> y=float32[256,512], 8 blocks
// motif: unread-results, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 2048, SHARE = 256 * 512 / 8;

template <typename T>
class Halves {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    pipe->InitBuffer(in, 2, TILE * sizeof(T));
    pipe->InitBuffer(out, 2, TILE * sizeof(T));
    xGm.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * SHARE);
    yGm.SetGlobalBuffer((__gm__ T*)y + GetBlockIdx() * SHARE);
  }
  __aicore__ inline void Squares() {
    for (uint32_t at = 0; at < SHARE; at += TILE) {
      Load(at);
      Square();
      Store(at);
    }
  }
  __aicore__ inline void Zeros() {
    for (uint32_t at = 0; at < SHARE; at += TILE) {
      Load(at);
      Zero();
      Store(at);
    }
  }

 private:
  __aicore__ inline void Load(uint32_t at) {
    LocalTensor<T> a = in.template AllocTensor<T>();
    DataCopy(a, xGm[at], TILE);
    in.EnQue(a);
  }
  __aicore__ inline void Square() {
    LocalTensor<T> a = in.template DeQue<T>();
    LocalTensor<T> b = out.template AllocTensor<T>();
    Abs(b, a, TILE);
    PipeBarrier<PIPE_V>();
    Mul(b, a, a, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
  }
  __aicore__ inline void Zero() {
    LocalTensor<T> a = in.template DeQue<T>();
    LocalTensor<T> b = out.template AllocTensor<T>();
    Sub(b, a, a, TILE);
    in.FreeTensor(a);
    out.EnQue(b);
  }
  __aicore__ inline void Store(uint32_t at) {
    LocalTensor<T> b = out.template DeQue<T>();
    DataCopy(yGm[at], b, TILE);
    out.FreeTensor(b);
  }
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  GlobalTensor<T> xGm, yGm;
};

extern "C" __global__ __aicore__ void filled_by_difference(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Halves<float> halves;
  halves.Init(x, y, &pipe);
  if (GetBlockIdx() < 4) {
    halves.Squares();
  } else {
    halves.Zeros();
  }
}
