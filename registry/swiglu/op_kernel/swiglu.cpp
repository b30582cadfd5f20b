// y = silu(a) * b with [a, b] = a row of x. Rows are dealt to the cores; a loop takes some rows of some columns.
// Built without the compiler's automatic synchronization: dependent vector instructions have a barrier between them.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelSwiglu {
 public:
  __aicore__ inline KernelSwiglu() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const SwigluTilingData& tiling, TPipe* pipe) {
    const uint64_t core = GetBlockIdx();
    const bool big = core < tiling.bigCoreNum;
    rowNum = tiling.smallCoreRows + (big ? 1 : 0);
    const uint64_t firstRow = core * tiling.smallCoreRows + (big ? core : tiling.bigCoreNum);
    rowLength = tiling.rowLength;
    rowsPerLoop = tiling.rowsPerLoop;
    tileCols = tiling.tileCols;
    xGm.SetGlobalBuffer((__gm__ T*)x + firstRow * rowLength * 2, rowNum * rowLength * 2);
    yGm.SetGlobalBuffer((__gm__ T*)y + firstRow * rowLength, rowNum * rowLength);
    const uint32_t tileLength = rowsPerLoop * tileCols;
    pipe->InitBuffer(inQueueA, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(inQueueB, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(sigmoidBuf, tileLength * sizeof(float));
    if constexpr (!std::is_same<T, float>::value) {
      pipe->InitBuffer(floatABuf, tileLength * sizeof(float));
      pipe->InitBuffer(floatBBuf, tileLength * sizeof(float));
    }
  }

  __aicore__ inline void Process() {
    for (uint64_t row = 0; row < rowNum; row += rowsPerLoop) {
      const uint32_t rows = static_cast<uint32_t>(rowNum - row < rowsPerLoop ? rowNum - row : rowsPerLoop);
      for (uint32_t col = 0; col < rowLength; col += tileCols) {
        const uint32_t cols = rowLength - col < tileCols ? rowLength - col : tileCols;
        CopyIn(row, rows, col, cols);
        Compute(rows * AlignedCols(cols));
        CopyOut(row, rows, col, cols);
      }
    }
  }

 private:
  static constexpr uint32_t BLOCK_LENGTH = 32 / sizeof(T);

  // In UB every row starts at a block.
  __aicore__ inline uint32_t AlignedCols(uint32_t cols) const {
    return (cols + BLOCK_LENGTH - 1) / BLOCK_LENGTH * BLOCK_LENGTH;
  }

  __aicore__ inline void CopyIn(uint64_t row, uint32_t rows, uint32_t col, uint32_t cols) {
    LocalTensor<T> aLocal = inQueueA.template AllocTensor<T>();
    LocalTensor<T> bLocal = inQueueB.template AllocTensor<T>();
    DataCopyExtParams copyParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(cols * sizeof(T)),
                                 static_cast<uint32_t>((2 * rowLength - cols) * sizeof(T)), 0, 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(aLocal, xGm[row * rowLength * 2 + col], copyParams, padParams);
    DataCopyPad(bLocal, xGm[row * rowLength * 2 + rowLength + col], copyParams, padParams);
    inQueueA.EnQue(aLocal);
    inQueueB.EnQue(bLocal);
  }

  __aicore__ inline void Compute(uint32_t count) {
    LocalTensor<T> aLocal = inQueueA.template DeQue<T>();
    LocalTensor<T> bLocal = inQueueB.template DeQue<T>();
    LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
    if constexpr (std::is_same<T, float>::value) {
      LocalTensor<float> silu = Silu(aLocal, count);
      Mul(yLocal, silu, bLocal, count);
    } else {
      LocalTensor<float> a = floatABuf.Get<float>();
      LocalTensor<float> b = floatBBuf.Get<float>();
      Cast(a, aLocal, RoundMode::CAST_NONE, count);
      Cast(b, bLocal, RoundMode::CAST_NONE, count);
      PipeBarrier<PIPE_V>();
      LocalTensor<float> silu = Silu(a, count);
      Mul(b, silu, b, count);
      PipeBarrier<PIPE_V>();
      Cast(yLocal, b, RoundMode::CAST_RINT, count);
    }
    outQueueY.EnQue(yLocal);
    inQueueA.FreeTensor(aLocal);
    inQueueB.FreeTensor(bLocal);
  }

  // a / (1 + exp(-a)); ends with a barrier.
  __aicore__ inline LocalTensor<float> Silu(const LocalTensor<float>& a, uint32_t count) {
    LocalTensor<float> silu = sigmoidBuf.Get<float>();
    Muls(silu, a, -1.0f, count);
    PipeBarrier<PIPE_V>();
    Exp(silu, silu, count);
    PipeBarrier<PIPE_V>();
    Adds(silu, silu, 1.0f, count);
    PipeBarrier<PIPE_V>();
    Div(silu, a, silu, count);
    PipeBarrier<PIPE_V>();
    return silu;
  }

  __aicore__ inline void CopyOut(uint64_t row, uint32_t rows, uint32_t col, uint32_t cols) {
    LocalTensor<T> yLocal = outQueueY.template DeQue<T>();
    DataCopyExtParams copyParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(cols * sizeof(T)), 0,
                                 static_cast<uint32_t>((rowLength - cols) * sizeof(T)), 0};
    DataCopyPad(yGm[row * rowLength + col], yLocal, copyParams);
    outQueueY.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueA, inQueueB;
  TQue<QuePosition::VECOUT, 1> outQueueY;
  TBuf<QuePosition::VECCALC> floatABuf, floatBBuf, sigmoidBuf;
  GlobalTensor<T> xGm, yGm;
  uint64_t rowNum = 0;
  uint32_t rowLength = 0, rowsPerLoop = 0, tileCols = 0;
};

extern "C" __global__ __aicore__ void swiglu(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelSwiglu<DTYPE_X> op;
  op.Init(x, y, tilingData, &pipe);
  op.Process();
}
