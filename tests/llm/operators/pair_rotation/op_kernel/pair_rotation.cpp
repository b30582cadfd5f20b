// Rotary embedding, the form that turns neighbouring elements. One row is in the Unified Buffer at a time.
#include "kernel_operator.h"

using namespace AscendC;

class KernelPairRotation {
 public:
  __aicore__ inline KernelPairRotation() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR cosine, GM_ADDR sine, GM_ADDR y, const PairRotationTilingData& tiling,
                              TPipe* pipe) {
    length = tiling.length;
    firstRow = GetBlockIdx() * tiling.rowsPerCore;
    lastRow = firstRow + tiling.rowsPerCore;
    if (lastRow > tiling.rows) {
      lastRow = tiling.rows;
    }
    xGm.SetGlobalBuffer((__gm__ float*)x);
    cosineGm.SetGlobalBuffer((__gm__ float*)cosine);
    sineGm.SetGlobalBuffer((__gm__ float*)sine);
    yGm.SetGlobalBuffer((__gm__ float*)y);
    pipe->InitBuffer(xQueue, 2, length * sizeof(float));
    pipe->InitBuffer(cosineQueue, 2, length / 2 * sizeof(float));
    pipe->InitBuffer(sineQueue, 2, length / 2 * sizeof(float));
    pipe->InitBuffer(yQueue, 2, length * sizeof(float));
  }

  __aicore__ inline void Process() {
    for (uint32_t row = firstRow; row < lastRow; row++) {
      CopyIn(row);
      Compute();
      CopyOut(row);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t row) {
    LocalTensor<float> xLocal = xQueue.AllocTensor<float>();
    LocalTensor<float> cosineLocal = cosineQueue.AllocTensor<float>();
    LocalTensor<float> sineLocal = sineQueue.AllocTensor<float>();
    DataCopy(xLocal, xGm[row * length], length);
    DataCopy(cosineLocal, cosineGm[row * (length / 2)], length / 2);
    DataCopy(sineLocal, sineGm[row * (length / 2)], length / 2);
    xQueue.EnQue(xLocal);
    cosineQueue.EnQue(cosineLocal);
    sineQueue.EnQue(sineLocal);
  }

  __aicore__ inline void Compute() {
    LocalTensor<float> xLocal = xQueue.DeQue<float>();
    LocalTensor<float> cosineLocal = cosineQueue.DeQue<float>();
    LocalTensor<float> sineLocal = sineQueue.DeQue<float>();
    LocalTensor<float> yLocal = yQueue.AllocTensor<float>();
    for (uint32_t i = 0; i < length / 2; i++) {
      float a = xLocal.GetValue(2 * i);
      float b = xLocal.GetValue(2 * i + 1);
      float c = cosineLocal.GetValue(i);
      float s = sineLocal.GetValue(i);
      yLocal.SetValue(2 * i, a * c - b * s);
      yLocal.SetValue(2 * i + 1, b * c + a * s);
    }
    yQueue.EnQue(yLocal);
    xQueue.FreeTensor(xLocal);
    cosineQueue.FreeTensor(cosineLocal);
    sineQueue.FreeTensor(sineLocal);
  }

  __aicore__ inline void CopyOut(uint32_t row) {
    LocalTensor<float> yLocal = yQueue.DeQue<float>();
    DataCopy(yGm[row * length], yLocal, length);
    yQueue.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 2> xQueue, cosineQueue, sineQueue;
  TQue<QuePosition::VECOUT, 2> yQueue;
  GlobalTensor<float> xGm, cosineGm, sineGm, yGm;
  uint32_t length = 0, firstRow = 0, lastRow = 0;
};

extern "C" __global__ __aicore__ void pair_rotation(GM_ADDR x, GM_ADDR cosine, GM_ADDR sine, GM_ADDR y,
                                                    GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelPairRotation op;
  op.Init(x, cosine, sine, y, tilingData, &pipe);
  op.Process();
}
