// With [a, b] = the halves of a head: y = [a * cos1 - b * sin1, b * cos2 + a * sin2], in float.
// An item is a group of heads of one token. In UB the first halves of its heads come before the second halves, each
// half from a new block on. Built without the compiler's automatic synchronization.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelRope {
 public:
  __aicore__ inline KernelRope() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR cos, GM_ADDR sin, GM_ADDR y, const RopeTilingData& tiling,
                              TPipe* pipe) {
    const uint64_t core = GetBlockIdx();
    const bool big = core < tiling.bigCoreNum;
    itemNum = tiling.smallCoreItems + (big ? 1 : 0);
    firstItem = core * tiling.smallCoreItems + (big ? core : tiling.bigCoreNum);
    headNum = tiling.headNum;
    headsPerItem = tiling.headsPerItem;
    itemsPerToken = tiling.itemsPerToken;
    halfDim = tiling.halfDim;
    alignedHalfDim = tiling.alignedHalfDim;
    xGm.SetGlobalBuffer((__gm__ T*)x);
    cosGm.SetGlobalBuffer((__gm__ T*)cos);
    sinGm.SetGlobalBuffer((__gm__ T*)sin);
    yGm.SetGlobalBuffer((__gm__ T*)y);
    const uint32_t headsLength = headsPerItem * 2 * alignedHalfDim;
    pipe->InitBuffer(inQueueX, tiling.bufferNum, headsLength * sizeof(T));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, headsLength * sizeof(T));
    pipe->InitBuffer(inQueueCos, tiling.bufferNum, 2 * alignedHalfDim * sizeof(T));
    pipe->InitBuffer(inQueueSin, tiling.bufferNum, 2 * alignedHalfDim * sizeof(T));
    pipe->InitBuffer(productBuf, 2 * alignedHalfDim * sizeof(float));
    if constexpr (!std::is_same<T, float>::value) {
      pipe->InitBuffer(xBuf, headsLength * sizeof(float));
      pipe->InitBuffer(yBuf, headsLength * sizeof(float));
      pipe->InitBuffer(cosBuf, 2 * alignedHalfDim * sizeof(float));
      pipe->InitBuffer(sinBuf, 2 * alignedHalfDim * sizeof(float));
    }
  }

  __aicore__ inline void Process() {
    for (uint64_t i = 0; i < itemNum; i++) {
      const uint64_t token = (firstItem + i) / itemsPerToken;
      const uint32_t firstHead = static_cast<uint32_t>((firstItem + i) % itemsPerToken) * headsPerItem;
      const uint32_t heads = headNum - firstHead < headsPerItem ? headNum - firstHead : headsPerItem;
      CopyIn(token, firstHead, heads);
      Compute(heads);
      CopyOut(token, firstHead, heads);
    }
  }

 private:
  // `count` halves that lie one behind the other in global memory.
  __aicore__ inline DataCopyExtParams Halves(uint32_t count) const {
    return {static_cast<uint16_t>(count), static_cast<uint32_t>(halfDim * sizeof(T)), 0, 0, 0};
  }

  __aicore__ inline void CopyIn(uint64_t token, uint32_t firstHead, uint32_t heads) {
    LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
    LocalTensor<T> cosLocal = inQueueCos.template AllocTensor<T>();
    LocalTensor<T> sinLocal = inQueueSin.template AllocTensor<T>();
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(xLocal, xGm[(token * headNum + firstHead) * 2 * halfDim], Halves(2 * heads), padParams);
    DataCopyPad(cosLocal, cosGm[token * 2 * halfDim], Halves(2), padParams);
    DataCopyPad(sinLocal, sinGm[token * 2 * halfDim], Halves(2), padParams);
    inQueueX.EnQue(xLocal);
    inQueueCos.EnQue(cosLocal);
    inQueueSin.EnQue(sinLocal);
  }

  __aicore__ inline void Compute(uint32_t heads) {
    LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
    LocalTensor<T> cosLocal = inQueueCos.template DeQue<T>();
    LocalTensor<T> sinLocal = inQueueSin.template DeQue<T>();
    LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
    if constexpr (std::is_same<T, float>::value) {
      Rotate(yLocal, xLocal, cosLocal, sinLocal, heads);
    } else {
      LocalTensor<float> x = xBuf.Get<float>();
      LocalTensor<float> y = yBuf.Get<float>();
      LocalTensor<float> cos = cosBuf.Get<float>();
      LocalTensor<float> sin = sinBuf.Get<float>();
      Cast(x, xLocal, RoundMode::CAST_NONE, heads * 2 * alignedHalfDim);
      Cast(cos, cosLocal, RoundMode::CAST_NONE, 2 * alignedHalfDim);
      Cast(sin, sinLocal, RoundMode::CAST_NONE, 2 * alignedHalfDim);
      PipeBarrier<PIPE_V>();
      Rotate(y, x, cos, sin, heads);
      Cast(yLocal, y, RoundMode::CAST_RINT, heads * 2 * alignedHalfDim);
    }
    outQueueY.EnQue(yLocal);
    inQueueX.FreeTensor(xLocal);
    inQueueCos.FreeTensor(cosLocal);
    inQueueSin.FreeTensor(sinLocal);
  }

  // Ends with a barrier.
  __aicore__ inline void Rotate(const LocalTensor<float>& y, const LocalTensor<float>& x, const LocalTensor<float>& cos,
                                const LocalTensor<float>& sin, uint32_t heads) {
    LocalTensor<float> product1 = productBuf.Get<float>();
    LocalTensor<float> product2 = product1[alignedHalfDim];
    for (uint32_t i = 0; i < heads; i++) {
      const uint32_t first = i * 2 * alignedHalfDim;
      const uint32_t second = first + alignedHalfDim;
      Mul(y[first], x[first], cos, halfDim);
      Mul(product1, x[second], sin, halfDim);
      Mul(y[second], x[second], cos[alignedHalfDim], halfDim);
      Mul(product2, x[first], sin[alignedHalfDim], halfDim);
      PipeBarrier<PIPE_V>();
      Sub(y[first], y[first], product1, halfDim);
      Add(y[second], y[second], product2, halfDim);
      PipeBarrier<PIPE_V>();
    }
  }

  __aicore__ inline void CopyOut(uint64_t token, uint32_t firstHead, uint32_t heads) {
    LocalTensor<T> yLocal = outQueueY.template DeQue<T>();
    DataCopyPad(yGm[(token * headNum + firstHead) * 2 * halfDim], yLocal, Halves(2 * heads));
    outQueueY.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueX, inQueueCos, inQueueSin;
  TQue<QuePosition::VECOUT, 1> outQueueY;
  TBuf<QuePosition::VECCALC> xBuf, yBuf, cosBuf, sinBuf, productBuf;
  GlobalTensor<T> xGm, cosGm, sinGm, yGm;
  uint64_t itemNum = 0, firstItem = 0;
  uint32_t headNum = 0, headsPerItem = 0, itemsPerToken = 0, halfDim = 0, alignedHalfDim = 0;
};

extern "C" __global__ __aicore__ void rope(GM_ADDR x, GM_ADDR cos, GM_ADDR sin, GM_ADDR y, GM_ADDR workspace,
                                           GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelRope<DTYPE_X> op;
  op.Init(x, cos, sin, y, tilingData, &pipe);
  op.Process();
}
