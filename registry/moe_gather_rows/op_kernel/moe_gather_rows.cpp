// y[i] = x[index[i]]. A loop collects some rows in one buffer and writes them with one copy; nothing is computed.
// An index outside of x is taken to the nearest row of x. Synchronization within a core is left to the compiler.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelMoeGatherRows {
 public:
  __aicore__ inline KernelMoeGatherRows() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR index, GM_ADDR y, const MoeGatherRowsTilingData& tiling, TPipe* pipe) {
    const uint64_t firstRow = GetBlockIdx() * tiling.rowsPerCore;
    const uint64_t rest = firstRow < tiling.rowNum ? tiling.rowNum - firstRow : 0;
    rowNum = rest < tiling.rowsPerCore ? rest : tiling.rowsPerCore;
    tokenNum = tiling.tokenNum;
    rowLength = tiling.rowLength;
    rowsPerLoop = tiling.rowsPerLoop;
    tileCols = tiling.tileCols;
    xGm.SetGlobalBuffer((__gm__ T*)x, tokenNum * rowLength);
    indexGm.SetGlobalBuffer((__gm__ int32_t*)index + firstRow, rowNum);
    yGm.SetGlobalBuffer((__gm__ T*)y + firstRow * rowLength, rowNum * rowLength);
    pipe->InitBuffer(queue, tiling.bufferNum, rowsPerLoop * tileCols * sizeof(T));
  }

  __aicore__ inline void Process() {
    for (uint64_t row = 0; row < rowNum; row += rowsPerLoop) {
      const uint32_t rows = static_cast<uint32_t>(rowNum - row < rowsPerLoop ? rowNum - row : rowsPerLoop);
      for (uint32_t col = 0; col < rowLength; col += tileCols) {
        const uint32_t cols = rowLength - col < tileCols ? rowLength - col : tileCols;
        CopyIn(row, rows, col, cols);
        CopyOut(row, rows, col, cols);
      }
    }
  }

 private:
  static constexpr uint32_t BLOCK_LENGTH = 32 / sizeof(T);

  __aicore__ inline void CopyIn(uint64_t row, uint32_t rows, uint32_t col, uint32_t cols) {
    LocalTensor<T> local = queue.template AllocTensor<T>();
    const uint32_t alignedCols = (cols + BLOCK_LENGTH - 1) / BLOCK_LENGTH * BLOCK_LENGTH;
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(cols * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    for (uint32_t i = 0; i < rows; i++) {
      DataCopyPad(local[i * alignedCols], xGm[Token(row + i) * rowLength + col], copyParams, padParams);
    }
    queue.EnQue(local);
  }

  __aicore__ inline uint64_t Token(uint64_t row) {
    const int64_t index = indexGm.GetValue(row);
    const int64_t last = static_cast<int64_t>(tokenNum) - 1;
    return index < 0 ? 0 : index > last ? last : index;
  }

  __aicore__ inline void CopyOut(uint64_t row, uint32_t rows, uint32_t col, uint32_t cols) {
    LocalTensor<T> local = queue.template DeQue<T>();
    DataCopyExtParams copyParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(cols * sizeof(T)), 0,
                                 static_cast<uint32_t>((rowLength - cols) * sizeof(T)), 0};
    DataCopyPad(yGm[row * rowLength + col], local, copyParams);
    queue.FreeTensor(local);
  }

  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 1> queue;
  GlobalTensor<T> xGm, yGm;
  GlobalTensor<int32_t> indexGm;
  uint64_t rowNum = 0, tokenNum = 0;
  uint32_t rowLength = 0, rowsPerLoop = 0, tileCols = 0;
};

extern "C" __global__ __aicore__ void moe_gather_rows(GM_ADDR x, GM_ADDR index, GM_ADDR y, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelMoeGatherRows<DTYPE_X> op;
  op.Init(x, index, y, tilingData, &pipe);
  op.Process();
}
