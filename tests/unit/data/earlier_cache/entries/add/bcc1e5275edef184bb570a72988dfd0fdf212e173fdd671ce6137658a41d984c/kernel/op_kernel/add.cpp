// z = x + y: each core runs over its part in tiles, double buffered.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelAdd {
 public:
  __aicore__ inline KernelAdd() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, const AddTilingData& tiling, TPipe* pipe) {
    const uint64_t core = GetBlockIdx();
    uint64_t begin = 0;
    if (core < tiling.bigCoreNum) {
      coreLength = tiling.bigCoreLength;
      begin = core * tiling.bigCoreLength;
    } else {
      coreLength = tiling.smallCoreLength;
      begin = tiling.bigCoreNum * tiling.bigCoreLength + (core - tiling.bigCoreNum) * tiling.smallCoreLength;
    }
    // The last block of the tensor may be a part of a block only.
    if (begin + coreLength > tiling.totalLength) {
      coreLength = begin < tiling.totalLength ? tiling.totalLength - begin : 0;
    }
    tileLength = tiling.tileLength;
    xGm.SetGlobalBuffer((__gm__ T*)x + begin, coreLength);
    yGm.SetGlobalBuffer((__gm__ T*)y + begin, coreLength);
    zGm.SetGlobalBuffer((__gm__ T*)z + begin, coreLength);
    pipe->InitBuffer(inQueueX, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(inQueueY, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(outQueueZ, tiling.bufferNum, tileLength * sizeof(T));
  }

  __aicore__ inline void Process() {
    for (uint64_t offset = 0; offset < coreLength; offset += tileLength) {
      const uint64_t rest = coreLength - offset;
      const uint32_t count = static_cast<uint32_t>(rest < tileLength ? rest : tileLength);
      CopyIn(offset, count);
      Compute(count);
      CopyOut(offset, count);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint64_t offset, uint32_t count) {
    LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
    LocalTensor<T> yLocal = inQueueY.template AllocTensor<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
    DataCopyPad(yLocal, yGm[offset], copyParams, padParams);
    inQueueX.EnQue(xLocal);
    inQueueY.EnQue(yLocal);
  }

  __aicore__ inline void Compute(uint32_t count) {
    LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
    LocalTensor<T> yLocal = inQueueY.template DeQue<T>();
    LocalTensor<T> zLocal = outQueueZ.template AllocTensor<T>();
    Add(zLocal, xLocal, yLocal, count);
    outQueueZ.EnQue(zLocal);
    inQueueX.FreeTensor(xLocal);
    inQueueY.FreeTensor(yLocal);
  }

  __aicore__ inline void CopyOut(uint64_t offset, uint32_t count) {
    LocalTensor<T> zLocal = outQueueZ.template DeQue<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPad(zGm[offset], zLocal, copyParams);
    outQueueZ.FreeTensor(zLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueX, inQueueY;
  TQue<QuePosition::VECOUT, 1> outQueueZ;
  GlobalTensor<T> xGm, yGm, zGm;
  uint64_t coreLength = 0;
  uint32_t tileLength = 0;
};

extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelAdd<DTYPE_X> op;
  op.Init(x, y, z, tilingData, &pipe);
  op.Process();
}
