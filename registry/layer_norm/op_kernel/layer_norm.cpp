// y = (x - mean) / sqrt(var + epsilon) * gamma + beta over the last axis, in float, one row a loop.
// Synchronization within a core is left to the compiler.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelLayerNorm {
 public:
  __aicore__ inline KernelLayerNorm() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y, const LayerNormTilingData& tiling,
                              TPipe* pipe) {
    const uint64_t firstRow = GetBlockIdx() * tiling.rowsPerCore;
    const uint64_t rest = firstRow < tiling.rowNum ? tiling.rowNum - firstRow : 0;
    rowNum = rest < tiling.rowsPerCore ? rest : tiling.rowsPerCore;
    rowLength = tiling.rowLength;
    epsilon = tiling.epsilon;
    averageFactor = tiling.averageFactor;
    xGm.SetGlobalBuffer((__gm__ T*)x + firstRow * rowLength, rowNum * rowLength);
    yGm.SetGlobalBuffer((__gm__ T*)y + firstRow * rowLength, rowNum * rowLength);
    gammaGm.SetGlobalBuffer((__gm__ T*)gamma, rowLength);
    betaGm.SetGlobalBuffer((__gm__ T*)beta, rowLength);
    const uint32_t alignedLength = tiling.alignedLength;
    pipe->InitBuffer(inQueueX, tiling.bufferNum, alignedLength * sizeof(T));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, alignedLength * sizeof(T));
    pipe->InitBuffer(gammaBuf, alignedLength * sizeof(float));
    pipe->InitBuffer(betaBuf, alignedLength * sizeof(float));
    pipe->InitBuffer(centeredBuf, alignedLength * sizeof(float));
    pipe->InitBuffer(squareBuf, alignedLength * sizeof(float));
    pipe->InitBuffer(reduceBuf, tiling.reduceBytes);
    pipe->InitBuffer(sumBuf, 32);
    gammaFloat = gammaBuf.Get<float>();
    betaFloat = betaBuf.Get<float>();
    centered = centeredBuf.Get<float>();
    square = squareBuf.Get<float>();
  }

  __aicore__ inline void Process() {
    if (rowNum == 0) {
      return;
    }
    LoadParameter(gammaFloat, gammaGm);
    LoadParameter(betaFloat, betaGm);
    for (uint64_t row = 0; row < rowNum; row++) {
      CopyIn(xGm[row * rowLength]);
      Compute();
      CopyOut(row);
    }
  }

 private:
  __aicore__ inline void LoadParameter(const LocalTensor<float>& dst, const GlobalTensor<T>& src) {
    CopyIn(src);
    LocalTensor<T> local = inQueueX.template DeQue<T>();
    ToFloat(dst, local);
    inQueueX.FreeTensor(local);
  }

  __aicore__ inline void CopyIn(const GlobalTensor<T>& src) {
    LocalTensor<T> local = inQueueX.template AllocTensor<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(rowLength * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(local, src, copyParams, padParams);
    inQueueX.EnQue(local);
  }

  __aicore__ inline void Compute() {
    LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
    LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
    ToFloat(centered, xLocal);
    inQueueX.FreeTensor(xLocal);

    const float mean = Sum(centered) * averageFactor;
    Adds(centered, centered, -mean, rowLength);
    Mul(square, centered, centered, rowLength);
    const float variance = Sum(square) * averageFactor;
    const float rstd = 1.0f / sqrt(variance + epsilon);

    Muls(centered, centered, rstd, rowLength);
    Mul(centered, centered, gammaFloat, rowLength);
    if constexpr (std::is_same<T, float>::value) {
      Add(yLocal, centered, betaFloat, rowLength);
    } else {
      Add(centered, centered, betaFloat, rowLength);
      Cast(yLocal, centered, RoundMode::CAST_RINT, rowLength);
    }
    outQueueY.EnQue(yLocal);
  }

  __aicore__ inline float Sum(const LocalTensor<float>& src) {
    LocalTensor<float> sum = sumBuf.Get<float>();
    LocalTensor<float> work = reduceBuf.Get<float>();
    ReduceSum(sum, src, work, rowLength);
    return sum.GetValue(0);
  }

  __aicore__ inline void ToFloat(const LocalTensor<float>& dst, const LocalTensor<T>& src) {
    if constexpr (std::is_same<T, float>::value) {
      Adds(dst, src, 0.0f, rowLength);
    } else {
      Cast(dst, src, RoundMode::CAST_NONE, rowLength);
    }
  }

  __aicore__ inline void CopyOut(uint64_t row) {
    LocalTensor<T> yLocal = outQueueY.template DeQue<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(rowLength * sizeof(T)), 0, 0, 0};
    DataCopyPad(yGm[row * rowLength], yLocal, copyParams);
    outQueueY.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueX;
  TQue<QuePosition::VECOUT, 1> outQueueY;
  TBuf<QuePosition::VECCALC> gammaBuf, betaBuf, centeredBuf, squareBuf, reduceBuf, sumBuf;
  LocalTensor<float> gammaFloat, betaFloat, centered, square;
  GlobalTensor<T> xGm, gammaGm, betaGm, yGm;
  uint64_t rowNum = 0;
  uint32_t rowLength = 0;
  float epsilon = 0.0f, averageFactor = 0.0f;
};

extern "C" __global__ __aicore__ void layer_norm(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y, GM_ADDR workspace,
                                                 GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelLayerNorm<DTYPE_X> op;
  op.Init(x, gamma, beta, y, tilingData, &pipe);
  op.Process();
}
