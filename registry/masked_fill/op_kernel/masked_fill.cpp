// y = mask ? value : x. The bytes of the mask become halves, a comparison makes bits of them, Select takes the bits.
// Synchronization within a core is left to the compiler.
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
class KernelMaskedFill {
 public:
  __aicore__ inline KernelMaskedFill() {}

  __aicore__ inline void Init(GM_ADDR x, GM_ADDR mask, GM_ADDR y, const MaskedFillTilingData& tiling, TPipe* pipe) {
    const uint64_t begin = GetBlockIdx() * tiling.coreLength;
    const uint64_t rest = begin < tiling.totalLength ? tiling.totalLength - begin : 0;
    coreLength = rest < tiling.coreLength ? rest : tiling.coreLength;
    tileLength = tiling.tileLength;
    value = static_cast<T>(tiling.value);
    xGm.SetGlobalBuffer((__gm__ T*)x + begin, coreLength);
    maskGm.SetGlobalBuffer((__gm__ uint8_t*)mask + begin, coreLength);
    yGm.SetGlobalBuffer((__gm__ T*)y + begin, coreLength);
    pipe->InitBuffer(inQueueX, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(inQueueMask, tiling.bufferNum, tileLength * sizeof(uint8_t));
    pipe->InitBuffer(outQueueY, tiling.bufferNum, tileLength * sizeof(T));
    pipe->InitBuffer(halfBuf, tileLength * sizeof(half));
    pipe->InitBuffer(bitsBuf, tileLength / 8);
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
  static constexpr uint32_t REPEAT_LENGTH = 256 / sizeof(half);

  __aicore__ inline void CopyIn(uint64_t offset, uint32_t count) {
    LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
    LocalTensor<uint8_t> maskLocal = inQueueMask.template AllocTensor<uint8_t>();
    DataCopyExtParams xParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> xPad{false, 0, 0, 0};
    DataCopyPad(xLocal, xGm[offset], xParams, xPad);
    DataCopyExtParams maskParams{1, count, 0, 0, 0};
    DataCopyPadExtParams<uint8_t> maskPad{false, 0, 0, 0};
    DataCopyPad(maskLocal, maskGm[offset], maskParams, maskPad);
    inQueueX.EnQue(xLocal);
    inQueueMask.EnQue(maskLocal);
  }

  __aicore__ inline void Compute(uint32_t count) {
    LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
    LocalTensor<uint8_t> maskLocal = inQueueMask.template DeQue<uint8_t>();
    LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
    LocalTensor<half> maskHalf = halfBuf.Get<half>();
    LocalTensor<uint8_t> keepBits = bitsBuf.Get<uint8_t>();
    // A comparison takes whole repeats; what lies behind the last element is never selected.
    const uint32_t wholeRepeats = (count + REPEAT_LENGTH - 1) / REPEAT_LENGTH * REPEAT_LENGTH;
    Cast(maskHalf, maskLocal, RoundMode::CAST_NONE, wholeRepeats);
    CompareScalar(keepBits, maskHalf, static_cast<half>(0.0f), CMPMODE::EQ, wholeRepeats);
    Select(yLocal, keepBits, xLocal, value, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
    outQueueY.EnQue(yLocal);
    inQueueX.FreeTensor(xLocal);
    inQueueMask.FreeTensor(maskLocal);
  }

  __aicore__ inline void CopyOut(uint64_t offset, uint32_t count) {
    LocalTensor<T> yLocal = outQueueY.template DeQue<T>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    DataCopyPad(yGm[offset], yLocal, copyParams);
    outQueueY.FreeTensor(yLocal);
  }

  TQue<QuePosition::VECIN, 1> inQueueX, inQueueMask;
  TQue<QuePosition::VECOUT, 1> outQueueY;
  TBuf<QuePosition::VECCALC> halfBuf, bitsBuf;
  GlobalTensor<T> xGm, yGm;
  GlobalTensor<uint8_t> maskGm;
  uint64_t coreLength = 0;
  uint32_t tileLength = 0;
  T value = static_cast<T>(0.0f);
};

extern "C" __global__ __aicore__ void masked_fill(GM_ADDR x, GM_ADDR mask, GM_ADDR y, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelMaskedFill<DTYPE_X> op;
  op.Init(x, mask, y, tilingData, &pipe);
  op.Process();
}
