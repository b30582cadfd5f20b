// y = x / (1 + exp(-x)), computed in float. Synchronization within a core is left to the compiler.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelSilu {
 public:
  __aicore__ inline KernelSilu() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const SiluTilingData& tiling, TPipe* pipe) {
    const uint64_t begin = GetBlockIdx() * tiling.coreLength;
    const uint64_t rest = begin < tiling.totalLength ? tiling.totalLength - begin : 0;
    coreLength = rest < tiling.coreLength ? rest : tiling.coreLength;
    tileLength = tiling.tileLength;
    xGm.SetGlobalBuffer((__gm__ T*)x + begin, coreLength);
    yGm.SetGlobalBuffer((__gm__ T*)y + begin, coreLength);
    pipe->InitBuffer(inQueueX, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(denominatorBuf, tileLength * sizeof(float));
    if constexpr (!std::is_same<T, float>::value) {
      pipe->InitBuffer(floatBuf, tileLength * sizeof(float));
    }
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
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
    DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
    inQueueX.EnQue(xLocal);
  }

  __aicore__ inline void Compute(uint32_t count) {
    LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
    LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
    LocalTensor<float> denominator = denominatorBuf.Get<float>();
    if constexpr (std::is_same<T, float>::value) {
      Denominator(denominator, xLocal, count);
      Div(yLocal, xLocal, denominator, count);
    } else {
      LocalTensor<float> xFloat = floatBuf.Get<float>();
      Cast(xFloat, xLocal, RoundMode::CAST_NONE, count);
      Denominator(denominator, xFloat, count);
      Div(xFloat, xFloat, denominator, count);
      Cast(yLocal, xFloat, RoundMode::CAST_RINT, count);
    }
    outQueueY.EnQue(yLocal);
    inQueueX.FreeTensor(xLocal);
  }

  // denominator = 1 + exp(-x)
  __aicore__ inline void Denominator(const LocalTensor<float>& denominator, const LocalTensor<float>& x,
                                     uint32_t count) {
    Muls(denominator, x, -1.0f, count);
    Exp(denominator, denominator, count);
    Adds(denominator, denominator, 1.0f, count);
  }

  __aicore__ inline void CopyOut(uint64_t offset, uint32_t count) {
    LocalTensor<T> yLocal = outQueueY.template DeQue<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPad(yGm[offset], yLocal, copyParams);
    outQueueY.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueX;
  TQue<QuePosition::VECOUT, 1> outQueueY;
  TBuf<QuePosition::VECCALC> floatBuf, denominatorBuf;
  GlobalTensor<T> xGm, yGm;
  uint64_t coreLength = 0;
  uint32_t tileLength = 0;
};

extern "C" __global__ __aicore__ void silu(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelSilu<DTYPE_X> op;
  op.Init(x, y, tilingData, &pipe);
  op.Process();
}
