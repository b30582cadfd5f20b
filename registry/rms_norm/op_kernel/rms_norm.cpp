// y = x * rsqrt(mean(x^2) + epsilon) * gamma over the last axis, computed in float.
// Key 0: whole rows in UB, several a loop. Key 1: a row is too long for UB and is read twice in tiles.
// Built without the compiler's automatic synchronization.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelRmsNorm {
 public:
  __aicore__ inline KernelRmsNorm() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, const RmsNormTilingData& tiling, TPipe* pipe) {
    const uint64_t core = GetBlockIdx();
    const bool big = core < tiling.bigCoreNum;
    rowNum = tiling.smallCoreRows + (big ? 1 : 0);
    const uint64_t firstRow = core * tiling.smallCoreRows + (big ? core : tiling.bigCoreNum);
    rowLength = tiling.rowLength;
    rowsPerLoop = tiling.rowsPerLoop;
    tileCols = tiling.tileCols;
    epsilon = tiling.epsilon;
    averageFactor = tiling.averageFactor;
    xGm.SetGlobalBuffer((__gm__ T*)x + firstRow * rowLength, rowNum * rowLength);
    yGm.SetGlobalBuffer((__gm__ T*)y + firstRow * rowLength, rowNum * rowLength);
    gammaGm.SetGlobalBuffer((__gm__ T*)gamma, rowLength);
    pipe->InitBuffer(inQueueX, tiling.bufferNum, rowsPerLoop * tileCols * sizeof(T));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, rowsPerLoop * tileCols * sizeof(T));
    pipe->InitBuffer(inQueueGamma, 1, tileCols * sizeof(T));
    pipe->InitBuffer(gammaBuf, tileCols * sizeof(float));
    pipe->InitBuffer(xBuf, tileCols * sizeof(float));
    pipe->InitBuffer(squareBuf, tileCols * sizeof(float));
    pipe->InitBuffer(reduceBuf, tiling.reduceBytes);
    pipe->InitBuffer(sumBuf, BLOCK_BYTES);
    gammaFloat = gammaBuf.Get<float>();
    xFloat = xBuf.Get<float>();
    square = squareBuf.Get<float>();
    work = reduceBuf.Get<float>();
    sum = sumBuf.Get<float>();
  }

  __aicore__ inline void ProcessWholeRows() {
    LoadGamma(0, rowLength);
    for (uint64_t row = 0; row < rowNum; row += rowsPerLoop) {
      const uint32_t rows = static_cast<uint32_t>(rowNum - row < rowsPerLoop ? rowNum - row : rowsPerLoop);
      CopyIn(row * rowLength, rows, rowLength);
      LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
      LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
      for (uint32_t i = 0; i < rows; i++) {
        ToFloat(xFloat, xLocal[i * tileCols], rowLength);
        Mul(square, xFloat, xFloat, rowLength);
        PipeBarrier<PIPE_V>();
        const float rstd = ReciprocalRoot(rowLength);
        Normalize(yLocal[i * tileCols], rstd, rowLength);
      }
      inQueueX.FreeTensor(xLocal);
      outQueueY.EnQue(yLocal);
      CopyOut(row * rowLength, rows, rowLength);
    }
  }

  __aicore__ inline void ProcessSplitRows() {
    for (uint64_t row = 0; row < rowNum; row++) {
      const float rstd = RowReciprocalRoot(row);
      for (uint32_t col = 0; col < rowLength; col += tileCols) {
        const uint32_t cols = rowLength - col < tileCols ? rowLength - col : tileCols;
        LoadGamma(col, cols);
        CopyIn(row * rowLength + col, 1, cols);
        LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
        LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        ToFloat(xFloat, xLocal, cols);
        inQueueX.FreeTensor(xLocal);
        Normalize(yLocal, rstd, cols);
        outQueueY.EnQue(yLocal);
        CopyOut(row * rowLength + col, 1, cols);
      }
    }
  }

 private:
  static constexpr uint32_t BLOCK_BYTES = 32;

  // 1 / sqrt(mean + epsilon) of a row that is read tile by tile: the squares add up lane by lane, then across lanes.
  __aicore__ inline float RowReciprocalRoot(uint64_t row) {
    Duplicate(square, 0.0f, tileCols);
    PipeBarrier<PIPE_V>();
    for (uint32_t col = 0; col < rowLength; col += tileCols) {
      const uint32_t cols = rowLength - col < tileCols ? rowLength - col : tileCols;
      CopyIn(row * rowLength + col, 1, cols);
      LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
      ToFloat(xFloat, xLocal, cols);
      inQueueX.FreeTensor(xLocal);
      Mul(xFloat, xFloat, xFloat, cols);
      PipeBarrier<PIPE_V>();
      Add(square, square, xFloat, cols);
      PipeBarrier<PIPE_V>();
    }
    return ReciprocalRoot(tileCols);
  }

  // 1 / sqrt(sum(square[0 .. count - 1]) * averageFactor + epsilon)
  __aicore__ inline float ReciprocalRoot(uint32_t count) {
    ReduceSum(sum, square, work, count);
    PipeBarrier<PIPE_V>();
    Muls(sum, sum, averageFactor, 1);
    PipeBarrier<PIPE_V>();
    Adds(sum, sum, epsilon, 1);
    PipeBarrier<PIPE_V>();
    Sqrt(sum, sum, 1);
    event_t eventVS = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(eventVS);
    WaitFlag<HardEvent::V_S>(eventVS);
    return 1.0f / sum.GetValue(0);
  }

  // y = xFloat * rstd * gammaFloat
  __aicore__ inline void Normalize(const LocalTensor<T>& y, float rstd, uint32_t count) {
    Muls(xFloat, xFloat, rstd, count);
    PipeBarrier<PIPE_V>();
    if constexpr (std::is_same<T, float>::value) {
      Mul(y, xFloat, gammaFloat, count);
    } else {
      Mul(xFloat, xFloat, gammaFloat, count);
      PipeBarrier<PIPE_V>();
      Cast(y, xFloat, RoundMode::CAST_RINT, count);
    }
    PipeBarrier<PIPE_V>();
  }

  // Ends with a barrier.
  __aicore__ inline void ToFloat(const LocalTensor<float>& dst, const LocalTensor<T>& src, uint32_t count) {
    if constexpr (std::is_same<T, float>::value) {
      Adds(dst, src, 0.0f, count);
    } else {
      Cast(dst, src, RoundMode::CAST_NONE, count);
    }
    PipeBarrier<PIPE_V>();
  }

  // In UB rows start every tileCols elements: the blocks between two rows of `cols` elements.
  __aicore__ inline uint32_t GapBlocks(uint32_t cols) const {
    return (tileCols * sizeof(T) - (cols * sizeof(T) + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES) / BLOCK_BYTES;
  }

  __aicore__ inline void LoadGamma(uint32_t col, uint32_t cols) {
    LocalTensor<T> gammaLocal = inQueueGamma.template AllocTensor<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(cols * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(gammaLocal, gammaGm[col], copyParams, padParams);
    inQueueGamma.EnQue(gammaLocal);
    gammaLocal = inQueueGamma.template DeQue<T>();
    ToFloat(gammaFloat, gammaLocal, cols);
    inQueueGamma.FreeTensor(gammaLocal);
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

  TQue<QuePosition::VECIN, 1> inQueueX, inQueueGamma;
  TQue<QuePosition::VECOUT, 1> outQueueY;
  TBuf<QuePosition::VECCALC> gammaBuf, xBuf, squareBuf, reduceBuf, sumBuf;
  LocalTensor<float> gammaFloat, xFloat, square, work, sum;
  GlobalTensor<T> xGm, gammaGm, yGm;
  uint64_t rowNum = 0;
  uint32_t rowLength = 0, rowsPerLoop = 0, tileCols = 0;
  float epsilon = 0.0f, averageFactor = 0.0f;
};

extern "C" __global__ __aicore__ void rms_norm(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelRmsNorm<DTYPE_X> op;
  op.Init(x, gamma, y, tilingData, &pipe);
  if (TILING_KEY_IS(0)) {
    op.ProcessWholeRows();
  } else if (TILING_KEY_IS(1)) {
    op.ProcessSplitRows();
  }
}
