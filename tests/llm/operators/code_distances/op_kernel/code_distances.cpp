// distances[i][j] = sum of |x[i] - codebook[j]|. The codebook is in the Unified Buffer; a row of x is compared with one
// code after the other.
#include "kernel_operator.h"

using namespace AscendC;

class KernelCodeDistances {
 public:
  __aicore__ inline KernelCodeDistances() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR codebook, GM_ADDR distances, const CodeDistancesTilingData& tiling,
                              TPipe* pipe) {
    codes = tiling.codes;
    length = tiling.length;
    firstRow = GetBlockIdx() * tiling.rowsPerCore;
    lastRow = firstRow + tiling.rowsPerCore;
    if (lastRow > tiling.rows) {
      lastRow = tiling.rows;
    }
    xGm.SetGlobalBuffer((__gm__ float*)x);
    codebookGm.SetGlobalBuffer((__gm__ float*)codebook);
    distancesGm.SetGlobalBuffer((__gm__ float*)distances);
    pipe->InitBuffer(xQueue, 2, length * sizeof(float));
    pipe->InitBuffer(codeQueue, 1, codes * length * sizeof(float));
    pipe->InitBuffer(outQueue, 2, codes * sizeof(float));
    pipe->InitBuffer(differenceBuf, length * sizeof(float));
    pipe->InitBuffer(sumBuf, 32);
    pipe->InitBuffer(workBuf, 256);
  }

  __aicore__ inline void Process() {
    LocalTensor<float> codeLocal = codeQueue.AllocTensor<float>();
    DataCopy(codeLocal, codebookGm, codes * length);
    codeQueue.EnQue(codeLocal);
    codeLocal = codeQueue.DeQue<float>();
    for (uint32_t row = firstRow; row < lastRow; row++) {
      CopyIn(row);
      Compute(codeLocal);
      CopyOut(row);
    }
    codeQueue.FreeTensor(codeLocal);
  }

 private:
  __aicore__ inline void CopyIn(uint32_t row) {
    LocalTensor<float> xLocal = xQueue.AllocTensor<float>();
    DataCopy(xLocal, xGm[row * length], length);
    xQueue.EnQue(xLocal);
  }

  __aicore__ inline void Compute(const LocalTensor<float>& codeLocal) {
    LocalTensor<float> xLocal = xQueue.DeQue<float>();
    LocalTensor<float> outLocal = outQueue.AllocTensor<float>();
    LocalTensor<float> difference = differenceBuf.Get<float>();
    LocalTensor<float> sum = sumBuf.Get<float>();
    LocalTensor<float> work = workBuf.Get<float>();
    for (uint32_t code = 0; code < codes; code++) {
      Sub(difference, xLocal, codeLocal[code * length], length);
      Abs(difference, difference, length);
      ReduceSum(sum, difference, work, length);
      outLocal.SetValue(code, sum.GetValue(0));
    }
    outQueue.EnQue(outLocal);
    xQueue.FreeTensor(xLocal);
  }

  __aicore__ inline void CopyOut(uint32_t row) {
    LocalTensor<float> outLocal = outQueue.DeQue<float>();
    DataCopy(distancesGm[row * codes], outLocal, codes);
    outQueue.FreeTensor(outLocal);
  }

  TQue<QuePosition::VECIN, 2> xQueue;
  TQue<QuePosition::VECIN, 1> codeQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  TBuf<QuePosition::VECCALC> differenceBuf, sumBuf, workBuf;
  GlobalTensor<float> xGm, codebookGm, distancesGm;
  uint32_t codes = 0, length = 0, firstRow = 0, lastRow = 0;
};

extern "C" __global__ __aicore__ void code_distances(GM_ADDR x, GM_ADDR codebook, GM_ADDR distances,
                                                     GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelCodeDistances op;
  op.Init(x, codebook, distances, tilingData, &pipe);
  op.Process();
}
