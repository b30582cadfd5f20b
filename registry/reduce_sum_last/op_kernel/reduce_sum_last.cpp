// y = sum of a row of x. A row is read in tiles that add up lane by lane in float; then its lanes are added.
// Synchronization within a core is left to the compiler.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelReduceSumLast {
 public:
  __aicore__ inline KernelReduceSumLast() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const ReduceSumLastTilingData& tiling, TPipe* pipe) {
    const uint64_t firstRow = GetBlockIdx() * tiling.rowsPerCore;
    const uint64_t rest = firstRow < tiling.rowNum ? tiling.rowNum - firstRow : 0;
    rowNum = rest < tiling.rowsPerCore ? rest : tiling.rowsPerCore;
    rowLength = tiling.rowLength;
    rowsPerLoop = tiling.rowsPerLoop;
    tileCols = tiling.tileCols;
    xGm.SetGlobalBuffer((__gm__ T*)x + firstRow * rowLength, rowNum * rowLength);
    yGm.SetGlobalBuffer((__gm__ T*)y + firstRow, rowNum);
    pipe->InitBuffer(inQueueX, tiling.bufferNum, tileCols * sizeof(T));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, rowsPerLoop * sizeof(T));
    pipe->InitBuffer(lanesBuf, tileCols * sizeof(float));
    pipe->InitBuffer(reduceBuf, tiling.reduceBytes);
    pipe->InitBuffer(sumsBuf, rowsPerLoop * sizeof(float));
    if constexpr (!std::is_same<T, float>::value) {
      pipe->InitBuffer(floatBuf, tileCols * sizeof(float));
    }
    lanes = lanesBuf.Get<float>();
    sums = sumsBuf.Get<float>();
  }

  __aicore__ inline void Process() {
    for (uint64_t row = 0; row < rowNum; row += rowsPerLoop) {
      const uint32_t rows = static_cast<uint32_t>(rowNum - row < rowsPerLoop ? rowNum - row : rowsPerLoop);
      for (uint32_t i = 0; i < rows; i++) {
        SumRow(row + i, i);
      }
      CopyOut(row, rows);
    }
  }

 private:
  // sums[index] = sum of row `row`
  __aicore__ inline void SumRow(uint64_t row, uint32_t index) {
    uint32_t lanesUsed = 0;
    for (uint64_t col = 0; col < rowLength; col += tileCols) {
      const uint32_t cols = static_cast<uint32_t>(rowLength - col < tileCols ? rowLength - col : tileCols);
      CopyIn(row * rowLength + col, cols);
      LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
      if (col == 0) {
        FirstTile(xLocal, cols);
        lanesUsed = cols;
      } else {
        NextTile(xLocal, cols);
      }
      inQueueX.FreeTensor(xLocal);
    }
    LocalTensor<float> work = reduceBuf.Get<float>();
    ReduceSum(sums[index], lanes, work, lanesUsed);
  }

  __aicore__ inline void FirstTile(const LocalTensor<T>& xLocal, uint32_t cols) {
    if constexpr (std::is_same<T, float>::value) {
      Adds(lanes, xLocal, 0.0f, cols);
    } else {
      Cast(lanes, xLocal, RoundMode::CAST_NONE, cols);
    }
  }

  __aicore__ inline void NextTile(const LocalTensor<T>& xLocal, uint32_t cols) {
    if constexpr (std::is_same<T, float>::value) {
      Add(lanes, lanes, xLocal, cols);
    } else {
      LocalTensor<float> xFloat = floatBuf.Get<float>();
      Cast(xFloat, xLocal, RoundMode::CAST_NONE, cols);
      Add(lanes, lanes, xFloat, cols);
    }
  }

  __aicore__ inline void CopyIn(uint64_t offset, uint32_t cols) {
    LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(cols * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
    inQueueX.EnQue(xLocal);
  }

  __aicore__ inline void CopyOut(uint64_t row, uint32_t rows) {
    LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
    if constexpr (std::is_same<T, float>::value) {
      Adds(yLocal, sums, 0.0f, rows);
    } else {
      Cast(yLocal, sums, RoundMode::CAST_RINT, rows);
    }
    outQueueY.EnQue(yLocal);
    yLocal = outQueueY.template DeQue<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(rows * sizeof(T)), 0, 0, 0};
    DataCopyPad(yGm[row], yLocal, copyParams);
    outQueueY.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueX;
  TQue<QuePosition::VECOUT, 1> outQueueY;
  TBuf<QuePosition::VECCALC> lanesBuf, floatBuf, reduceBuf, sumsBuf;
  LocalTensor<float> lanes, sums;
  GlobalTensor<T> xGm, yGm;
  uint64_t rowNum = 0, rowLength = 0;
  uint32_t rowsPerLoop = 0, tileCols = 0;
};

extern "C" __global__ __aicore__ void reduce_sum_last(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelReduceSumLast<DTYPE_X> op;
  op.Init(x, y, tilingData, &pipe);
  op.Process();
}
