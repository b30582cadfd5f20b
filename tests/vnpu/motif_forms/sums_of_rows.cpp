// y = max(x) + sum(x) of each row; the elements are needed again behind the first reduction
// case: x=float32[64,1003] -> y=float32[64], 8 blocks
// motif: add-tree, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 1003, PADDED = 1008, SHARE = 64 / 8;

extern "C" __global__ __aicore__ void sums_of_rows(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 1> out;
  TBuf<QuePosition::VECCALC> room, most;
  pipe.InitBuffer(in, 2, PADDED * sizeof(float));
  pipe.InitBuffer(out, 1, 32);
  pipe.InitBuffer(room, PADDED * sizeof(float));
  pipe.InitBuffer(most, 32);
  GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE);
  for (uint32_t i = 0; i < SHARE; i++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopyPad(a, xGm[i * WIDTH], {1, static_cast<uint32_t>(WIDTH * sizeof(float)), 0, 0, 0}, {false, 0, 0, 0.0f});
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    LocalTensor<float> work = room.Get<float>();
    LocalTensor<float> top = most.Get<float>();
    ReduceMax<float>(top, a, work, WIDTH, false);
    PipeBarrier<PIPE_V>();
    ReduceSum<float>(b, a, work, WIDTH);
    PipeBarrier<PIPE_V>();
    Add(b, b, top, 1);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopyPad(yGm[i], b, {1, sizeof(float), 0, 0, 0});
    out.FreeTensor(b);
  }
}
