// y = exp(x - max(x)) / sum(exp(x - max(x))) over the last axis, computed in float.
// Key 0: whole rows in UB, several a loop. Key 1: a row is too long for UB and is read three times in tiles.
// Built without the compiler's automatic synchronization.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelSoftmax {
 public:
  __aicore__ inline KernelSoftmax() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const SoftmaxTilingData& tiling, TPipe* pipe) {
    const uint64_t core = GetBlockIdx();
    const bool big = core < tiling.bigCoreNum;
    rowNum = tiling.smallCoreRows + (big ? 1 : 0);
    const uint64_t firstRow = core * tiling.smallCoreRows + (big ? core : tiling.bigCoreNum);
    rowLength = tiling.rowLength;
    rowsPerLoop = tiling.rowsPerLoop;
    tileCols = tiling.tileCols;
    xGm.SetGlobalBuffer((__gm__ T*)x + firstRow * rowLength, rowNum * rowLength);
    yGm.SetGlobalBuffer((__gm__ T*)y + firstRow * rowLength, rowNum * rowLength);
    pipe->InitBuffer(inQueueX, tiling.bufferNum, rowsPerLoop * tileCols * sizeof(T));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, rowsPerLoop * tileCols * sizeof(T));
    pipe->InitBuffer(floatBuf, tileCols * sizeof(float));
    pipe->InitBuffer(reduceBuf, tiling.reduceBytes);
    pipe->InitBuffer(resultBuf, BLOCK_BYTES);
    rowFloat = floatBuf.Get<float>();
    work = reduceBuf.Get<float>();
    result = resultBuf.Get<float>();
  }

  __aicore__ inline void ProcessWholeRows() {
    for (uint64_t row = 0; row < rowNum; row += rowsPerLoop) {
      const uint32_t rows = static_cast<uint32_t>(rowNum - row < rowsPerLoop ? rowNum - row : rowsPerLoop);
      CopyIn(row * rowLength, rows, rowLength);
      LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
      LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
      for (uint32_t i = 0; i < rows; i++) {
        ToFloat(xLocal[i * tileCols], rowLength);
        const float maximum = Maximum(rowLength);
        ExpMinus(maximum, rowLength);
        const float sum = Sum(rowLength);
        FromFloat(yLocal[i * tileCols], 1.0f / sum, rowLength);
      }
      inQueueX.FreeTensor(xLocal);
      outQueueY.EnQue(yLocal);
      CopyOut(row * rowLength, rows, rowLength);
    }
  }

  __aicore__ inline void ProcessSplitRows() {
    for (uint64_t row = 0; row < rowNum; row++) {
      const uint64_t begin = row * rowLength;
      float maximum = 0.0f;
      for (uint32_t col = 0; col < rowLength; col += tileCols) {
        LoadTile(begin + col, TileCols(col));
        const float tileMaximum = Maximum(TileCols(col));
        maximum = col == 0 || tileMaximum > maximum ? tileMaximum : maximum;
      }
      float sum = 0.0f;
      for (uint32_t col = 0; col < rowLength; col += tileCols) {
        LoadTile(begin + col, TileCols(col));
        ExpMinus(maximum, TileCols(col));
        sum += Sum(TileCols(col));
      }
      for (uint32_t col = 0; col < rowLength; col += tileCols) {
        LoadTile(begin + col, TileCols(col));
        ExpMinus(maximum, TileCols(col));
        LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        FromFloat(yLocal, 1.0f / sum, TileCols(col));
        outQueueY.EnQue(yLocal);
        CopyOut(begin + col, 1, TileCols(col));
      }
    }
  }

 private:
  static constexpr uint32_t BLOCK_BYTES = 32;

  __aicore__ inline uint32_t TileCols(uint32_t col) const {
    return rowLength - col < tileCols ? rowLength - col : tileCols;
  }

  __aicore__ inline void LoadTile(uint64_t offset, uint32_t cols) {
    CopyIn(offset, 1, cols);
    LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
    ToFloat(xLocal, cols);
    inQueueX.FreeTensor(xLocal);
  }

  // rowFloat = src; ends with a barrier.
  __aicore__ inline void ToFloat(const LocalTensor<T>& src, uint32_t count) {
    if constexpr (std::is_same<T, float>::value) {
      Adds(rowFloat, src, 0.0f, count);
    } else {
      Cast(rowFloat, src, RoundMode::CAST_NONE, count);
    }
    PipeBarrier<PIPE_V>();
  }

  // dst = rowFloat * factor
  __aicore__ inline void FromFloat(const LocalTensor<T>& dst, float factor, uint32_t count) {
    if constexpr (std::is_same<T, float>::value) {
      Muls(dst, rowFloat, factor, count);
    } else {
      Muls(rowFloat, rowFloat, factor, count);
      PipeBarrier<PIPE_V>();
      Cast(dst, rowFloat, RoundMode::CAST_RINT, count);
    }
    PipeBarrier<PIPE_V>();
  }

  __aicore__ inline float Maximum(uint32_t count) {
    ReduceMax(result, rowFloat, work, count, false);
    return FirstResult();
  }

  __aicore__ inline float Sum(uint32_t count) {
    ReduceSum(result, rowFloat, work, count);
    return FirstResult();
  }

  // The scalar unit reads what the vector unit wrote; the next reduction comes after the read.
  __aicore__ inline float FirstResult() {
    event_t eventVS = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(eventVS);
    WaitFlag<HardEvent::V_S>(eventVS);
    const float value = result.GetValue(0);
    event_t eventSV = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V));
    SetFlag<HardEvent::S_V>(eventSV);
    WaitFlag<HardEvent::S_V>(eventSV);
    return value;
  }

  // rowFloat = exp(rowFloat - maximum); ends with a barrier.
  __aicore__ inline void ExpMinus(float maximum, uint32_t count) {
    Adds(rowFloat, rowFloat, -maximum, count);
    PipeBarrier<PIPE_V>();
    Exp(rowFloat, rowFloat, count);
    PipeBarrier<PIPE_V>();
  }

  // In UB rows start every tileCols elements: the blocks between two rows of `cols` elements.
  __aicore__ inline uint32_t GapBlocks(uint32_t cols) const {
    return (tileCols * sizeof(T) - (cols * sizeof(T) + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES) / BLOCK_BYTES;
  }

  __aicore__ inline void CopyIn(uint64_t offset, uint32_t rows, uint32_t cols) {
    LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
    DataCopyExtParams copyParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(cols * sizeof(T)), 0,
                                 GapBlocks(cols), 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
    inQueueX.EnQue(xLocal);
  }

  __aicore__ inline void CopyOut(uint64_t offset, uint32_t rows, uint32_t cols) {
    LocalTensor<T> yLocal = outQueueY.template DeQue<T>();
    DataCopyExtParams copyParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(cols * sizeof(T)), GapBlocks(cols),
                                 0, 0};
    DataCopyPad(yGm[offset], yLocal, copyParams);
    outQueueY.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueX;
  TQue<QuePosition::VECOUT, 1> outQueueY;
  TBuf<QuePosition::VECCALC> floatBuf, reduceBuf, resultBuf;
  LocalTensor<float> rowFloat, work, result;
  GlobalTensor<T> xGm, yGm;
  uint64_t rowNum = 0;
  uint32_t rowLength = 0, rowsPerLoop = 0, tileCols = 0;
};

extern "C" __global__ __aicore__ void softmax(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelSoftmax<DTYPE_X> op;
  op.Init(x, y, tilingData, &pipe);
  if (TILING_KEY_IS(0)) {
    op.ProcessWholeRows();
  } else if (TILING_KEY_IS(1)) {
    op.ProcessSplitRows();
  }
}
