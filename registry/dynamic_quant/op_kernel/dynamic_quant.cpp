// Each row of x to int8: scale = max(|x|) / 127, y = round(x * 127 / max(|x|)), to nearest even.
// A loop takes some rows: first the maxima of all, then one wait of the scalar unit, then the rows.
// Built without the compiler's automatic synchronization.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelDynamicQuant {
 public:
  __aicore__ inline KernelDynamicQuant() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR scale, const DynamicQuantTilingData& tiling, TPipe* pipe) {
    const uint64_t core = GetBlockIdx();
    const bool big = core < tiling.bigCoreNum;
    rowNum = tiling.smallCoreRows + (big ? 1 : 0);
    const uint64_t firstRow = core * tiling.smallCoreRows + (big ? core : tiling.bigCoreNum);
    rowLength = tiling.rowLength;
    alignedLength = tiling.alignedLength;
    rowsPerLoop = tiling.rowsPerLoop;
    xGm.SetGlobalBuffer((__gm__ T*)x + firstRow * rowLength, rowNum * rowLength);
    yGm.SetGlobalBuffer((__gm__ int8_t*)y + firstRow * rowLength, rowNum * rowLength);
    scaleGm.SetGlobalBuffer((__gm__ float*)scale + firstRow, rowNum);
    pipe->InitBuffer(inQueueX, tiling.bufferNum, rowsPerLoop * alignedLength * sizeof(T));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, rowsPerLoop * alignedLength * sizeof(int8_t));
    pipe->InitBuffer(outQueueScale, tiling.bufferNum, rowsPerLoop * sizeof(float));
    pipe->InitBuffer(floatBuf, alignedLength * sizeof(float));
    pipe->InitBuffer(halfBuf, alignedLength * sizeof(half));
    pipe->InitBuffer(maximaBuf, rowsPerLoop * sizeof(float));
    pipe->InitBuffer(reduceBuf, tiling.reduceBytes);
    rowFloat = floatBuf.Get<float>();
    rowHalf = halfBuf.Get<half>();
    maxima = maximaBuf.Get<float>();
    work = reduceBuf.Get<float>();
  }

  __aicore__ inline void Process() {
    for (uint64_t row = 0; row < rowNum; row += rowsPerLoop) {
      const uint32_t rows = static_cast<uint32_t>(rowNum - row < rowsPerLoop ? rowNum - row : rowsPerLoop);
      CopyIn(row, rows);
      Compute(rows);
      CopyOut(row, rows);
    }
  }

 private:
  static constexpr uint32_t BLOCK_BYTES = 32;
  static constexpr float INT8_MAXIMUM = 127.0f;

  // In UB rows start every alignedLength elements: the blocks between two rows of elements of `size` bytes.
  __aicore__ inline uint32_t GapBlocks(uint32_t size) const {
    return (alignedLength * size - (rowLength * size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES) / BLOCK_BYTES;
  }

  __aicore__ inline void CopyIn(uint64_t row, uint32_t rows) {
    LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
    DataCopyExtParams copyParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(rowLength * sizeof(T)), 0,
                                 GapBlocks(sizeof(T)), 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(xLocal, xGm[row * rowLength], copyParams, padParams);
    inQueueX.EnQue(xLocal);
  }

  __aicore__ inline void Compute(uint32_t rows) {
    LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
    LocalTensor<int8_t> yLocal = outQueueY.template AllocTensor<int8_t>();
    LocalTensor<float> scaleLocal = outQueueScale.template AllocTensor<float>();
    for (uint32_t i = 0; i < rows; i++) {
      Cast(rowFloat, xLocal[i * alignedLength], RoundMode::CAST_NONE, rowLength);
      PipeBarrier<PIPE_V>();
      Abs(rowFloat, rowFloat, rowLength);
      PipeBarrier<PIPE_V>();
      ReduceMax(maxima[i], rowFloat, work, rowLength, false);
      PipeBarrier<PIPE_V>();
    }
    Muls(scaleLocal, maxima, 1.0f / INT8_MAXIMUM, rows);
    event_t eventVS = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(eventVS);
    WaitFlag<HardEvent::V_S>(eventVS);
    for (uint32_t i = 0; i < rows; i++) {
      const float maximum = maxima.GetValue(i);
      const float factor = maximum > 0.0f ? INT8_MAXIMUM / maximum : 0.0f;
      Quantize(yLocal[i * alignedLength], xLocal[i * alignedLength], factor);
    }
    inQueueX.FreeTensor(xLocal);
    outQueueY.EnQue(yLocal);
    outQueueScale.EnQue(scaleLocal);
  }

  // There is no conversion from float to int8; by way of int16 and half every value stays exact.
  __aicore__ inline void Quantize(const LocalTensor<int8_t>& y, const LocalTensor<T>& x, float factor) {
    LocalTensor<int16_t> rowInt16 = rowHalf.ReinterpretCast<int16_t>();
    Cast(rowFloat, x, RoundMode::CAST_NONE, rowLength);
    PipeBarrier<PIPE_V>();
    Muls(rowFloat, rowFloat, factor, rowLength);
    PipeBarrier<PIPE_V>();
    Cast(rowInt16, rowFloat, RoundMode::CAST_RINT, rowLength);
    PipeBarrier<PIPE_V>();
    Cast(rowHalf, rowInt16, RoundMode::CAST_NONE, rowLength);
    PipeBarrier<PIPE_V>();
    Cast(y, rowHalf, RoundMode::CAST_TRUNC, rowLength);
    PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void CopyOut(uint64_t row, uint32_t rows) {
    LocalTensor<int8_t> yLocal = outQueueY.template DeQue<int8_t>();
    LocalTensor<float> scaleLocal = outQueueScale.template DeQue<float>();
    DataCopyExtParams copyParams{static_cast<uint16_t>(rows), rowLength, GapBlocks(sizeof(int8_t)), 0, 0};
    DataCopyPad(yGm[row * rowLength], yLocal, copyParams);
    DataCopyExtParams scaleParams{1, static_cast<uint32_t>(rows * sizeof(float)), 0, 0, 0};
    DataCopyPad(scaleGm[row], scaleLocal, scaleParams);
    outQueueY.FreeTensor(yLocal);
    outQueueScale.FreeTensor(scaleLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueX;
  TQue<QuePosition::VECOUT, 1> outQueueY, outQueueScale;
  TBuf<QuePosition::VECCALC> floatBuf, halfBuf, maximaBuf, reduceBuf;
  LocalTensor<float> rowFloat, maxima, work;
  LocalTensor<half> rowHalf;
  GlobalTensor<T> xGm;
  GlobalTensor<int8_t> yGm;
  GlobalTensor<float> scaleGm;
  uint64_t rowNum = 0;
  uint32_t rowLength = 0, alignedLength = 0, rowsPerLoop = 0;
};

extern "C" __global__ __aicore__ void dynamic_quant(GM_ADDR x, GM_ADDR y, GM_ADDR scale, GM_ADDR workspace,
                                                    GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelDynamicQuant<DTYPE_X> op;
  op.Init(x, y, scale, tilingData, &pipe);
  op.Process();
}
