// y = |x|, rows of 41 elements, whole blocks and the rest of each by copies of their own
// case: x=float32[512,41] -> y=float32[512,41], 8 blocks
// motif: whole-copy, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t LENGTH = 41, ROWS = 512 / 8;

class BlocksAndRest {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * ROWS * LENGTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * LENGTH);
    pipe->InitBuffer(inQueue, 2, 192);
    pipe->InitBuffer(outQueue, 2, 192);
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < ROWS; i++) {
      CopyIn(i, LENGTH);
      LocalTensor<float> in = inQueue.DeQue<float>();
      LocalTensor<float> out = outQueue.AllocTensor<float>();
      Abs(out, in, LENGTH);
      outQueue.EnQue(out);
      inQueue.FreeTensor(in);
      CopyOut(i, LENGTH);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t row, uint32_t length) {
    LocalTensor<float> in = inQueue.AllocTensor<float>();
    const uint32_t blocks = length / 8 * 8;
    const uint32_t rest = length - blocks;
    if (blocks != 0) {
      DataCopy(in, xGm[row * LENGTH], blocks);
    }
    if (rest != 0) {
      const DataCopyExtParams params{1, static_cast<uint32_t>(rest * sizeof(float)), 0, 0, 0};
      const DataCopyPadExtParams<float> padding{false, 0, 0, 0};
      DataCopyPad(in[blocks], xGm[row * LENGTH][blocks], params, padding);
    }
    inQueue.EnQue(in);
  }
  __aicore__ inline void CopyOut(uint32_t row, uint32_t length) {
    LocalTensor<float> out = outQueue.DeQue<float>();
    const uint32_t blocks = length / 8 * 8;
    const uint32_t rest = length - blocks;
    GlobalTensor<float> to = yGm[row * LENGTH];
    if (blocks != 0) DataCopy(to, out, blocks);
    if (rest != 0) {
      const DataCopyExtParams params{1, static_cast<uint32_t>(rest * sizeof(float)), 0, 0, 0};
      DataCopyPad(to[blocks], out[blocks], params);
    }
    outQueue.FreeTensor(out);
  }
  TQue<QuePosition::VECIN, 1> inQueue;
  TQue<QuePosition::VECOUT, 1> outQueue;
  GlobalTensor<float> xGm, yGm;
};

extern "C" __global__ __aicore__ void blocks_and_rest(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  BlocksAndRest op;
  op.Init(x, y, &pipe);
  op.Process();
}
