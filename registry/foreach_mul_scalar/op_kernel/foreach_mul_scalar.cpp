// y[i] = x[i] * scalar for every tensor of a list, multiplied in float. scalar is a tensor of one element.
// Synchronization within a core is left to the compiler.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelForeachMulScalar {
 public:
  __aicore__ inline KernelForeachMulScalar() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR scalarTensor, GM_ADDR y, const ForeachMulScalarTilingData& tiling,
                              TPipe* pipe) {
    const uint64_t core = GetBlockIdx();
    const bool big = core < tiling.bigCoreNum;
    firstBlock = core * tiling.smallCoreBlocks + (big ? core : tiling.bigCoreNum);
    lastBlock = firstBlock + tiling.smallCoreBlocks + (big ? 1 : 0);
    tileLength = tiling.tileLength;
    xList = x;
    yList = y;
    GlobalTensor<float> scalarGm;
    scalarGm.SetGlobalBuffer((__gm__ float*)scalarTensor, 1);
    scalar = scalarGm.GetValue(0);
    pipe->InitBuffer(inQueueX, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, tileLength * sizeof(T));
    if constexpr (!std::is_same<T, float>::value) {
      pipe->InitBuffer(floatBuf, tileLength * sizeof(float));
    }
  }

  // Finds the part of every tensor that lies in this core's blocks.
  __aicore__ inline void Process(const ForeachMulScalarTilingData& tiling) {
    uint64_t tensorBlock = 0;
    for (uint32_t i = 0; i < tiling.tensorNum && tensorBlock < lastBlock; i++) {
      const uint64_t length = tiling.tensorLength[i];
      const uint64_t nextBlock = tensorBlock + (length + BLOCK_LENGTH - 1) / BLOCK_LENGTH;
      const uint64_t from = firstBlock > tensorBlock ? firstBlock : tensorBlock;
      const uint64_t to = lastBlock < nextBlock ? lastBlock : nextBlock;
      if (from < to) {
        const uint64_t begin = (from - tensorBlock) * BLOCK_LENGTH;
        const uint64_t end = (to - tensorBlock) * BLOCK_LENGTH;
        ProcessTensor(i, begin, end < length ? end : length);
      }
      tensorBlock = nextBlock;
    }
  }

 private:
  static constexpr uint32_t BLOCK_LENGTH = 32 / sizeof(T);

  __aicore__ inline void ProcessTensor(uint32_t index, uint64_t begin, uint64_t end) {
    xGm.SetGlobalBuffer(TensorAddress(xList, index));
    yGm.SetGlobalBuffer(TensorAddress(yList, index));
    for (uint64_t offset = begin; offset < end; offset += tileLength) {
      const uint32_t count = static_cast<uint32_t>(end - offset < tileLength ? end - offset : tileLength);
      CopyIn(offset, count);
      Compute(count);
      CopyOut(offset, count);
    }
  }

  // A tensor list is a block of 64-bit words; the first one is the offset in bytes of the addresses.
  __aicore__ inline __gm__ T* TensorAddress(GM_ADDR list, uint32_t index) {
    __gm__ uint64_t* words = (__gm__ uint64_t*)list;
    __gm__ uint64_t* addresses = words + (*words >> 3);
    return (__gm__ T*)(*(addresses + index));
  }

  __aicore__ inline void CopyIn(uint64_t offset, uint32_t count) {
    LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
    inQueueX.EnQue(xLocal);
  }

  __aicore__ inline void Compute(uint32_t count) {
    LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
    LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
    if constexpr (std::is_same<T, float>::value) {
      Muls(yLocal, xLocal, scalar, count);
    } else {
      LocalTensor<float> xFloat = floatBuf.Get<float>();
      Cast(xFloat, xLocal, RoundMode::CAST_NONE, count);
      Muls(xFloat, xFloat, scalar, count);
      Cast(yLocal, xFloat, RoundMode::CAST_RINT, count);
    }
    outQueueY.EnQue(yLocal);
    inQueueX.FreeTensor(xLocal);
  }

  __aicore__ inline void CopyOut(uint64_t offset, uint32_t count) {
    LocalTensor<T> yLocal = outQueueY.template DeQue<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPad(yGm[offset], yLocal, copyParams);
    outQueueY.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueX;
  TQue<QuePosition::VECOUT, 1> outQueueY;
  TBuf<QuePosition::VECCALC> floatBuf;
  GlobalTensor<T> xGm, yGm;
  GM_ADDR xList = nullptr;
  GM_ADDR yList = nullptr;
  uint64_t firstBlock = 0, lastBlock = 0;
  uint32_t tileLength = 0;
  float scalar = 0.0f;
};

extern "C" __global__ __aicore__ void foreach_mul_scalar(GM_ADDR x, GM_ADDR scalar, GM_ADDR y, GM_ADDR workspace,
                                                         GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelForeachMulScalar<DTYPE_X> op;
  op.Init(x, scalar, y, tilingData, &pipe);
  op.Process(tilingData);
}
