// y[i] = x[0] + ... + x[i] in every row. One row is in the Unified Buffer at a time.
#include "kernel_operator.h"

using namespace AscendC;

class KernelRowCumsum {
 public:
  __aicore__ inline KernelRowCumsum() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const RowCumsumTilingData& tiling, TPipe* pipe) {
    length = tiling.length;
    firstRow = GetBlockIdx() * tiling.rowsPerCore;
    lastRow = firstRow + tiling.rowsPerCore;
    if (lastRow > tiling.rows) {
      lastRow = tiling.rows;
    }
    xGm.SetGlobalBuffer((__gm__ float*)x);
    yGm.SetGlobalBuffer((__gm__ float*)y);
    pipe->InitBuffer(inQueue, 2, length * sizeof(float));
    pipe->InitBuffer(outQueue, 2, length * sizeof(float));
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
    LocalTensor<float> xLocal = inQueue.AllocTensor<float>();
    DataCopy(xLocal, xGm[row * length], length);
    inQueue.EnQue(xLocal);
  }

  __aicore__ inline void Compute() {
    LocalTensor<float> xLocal = inQueue.DeQue<float>();
    LocalTensor<float> yLocal = outQueue.AllocTensor<float>();
    float sum = 0.0f;
    for (uint32_t i = 0; i < length; i++) {
      sum += xLocal.GetValue(i);
      yLocal.SetValue(i, sum);
    }
    outQueue.EnQue(yLocal);
    inQueue.FreeTensor(xLocal);
  }

  __aicore__ inline void CopyOut(uint32_t row) {
    LocalTensor<float> yLocal = outQueue.DeQue<float>();
    DataCopy(yGm[row * length], yLocal, length);
    outQueue.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 2> inQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  GlobalTensor<float> xGm, yGm;
  uint32_t length = 0, firstRow = 0, lastRow = 0;
};

extern "C" __global__ __aicore__ void row_cumsum(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelRowCumsum op;
  op.Init(x, y, tilingData, &pipe);
  op.Process();
}
