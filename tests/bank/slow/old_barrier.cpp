// z = x + y in half, with the old spelling of a barrier between the stages
// case: x=float16[1024,512] y=float16[1024,512] -> z=float16[1024,512], 8 blocks
// class: full_barrier
#include "kernel_operator.h"
using namespace AscendC;
const int TILE_LEN = 4096;
const int PER_CORE = 1024 * 512 / 8;

extern "C" __global__ __aicore__ void old_barrier(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  TPipe tpipe;
  TBuf<TPosition::VECCALC> bufX, bufY, bufZ;
  tpipe.InitBuffer(bufX, TILE_LEN * sizeof(half));
  tpipe.InitBuffer(bufY, TILE_LEN * sizeof(half));
  tpipe.InitBuffer(bufZ, TILE_LEN * sizeof(half));
  LocalTensor<half> xLocal = bufX.Get<half>();
  LocalTensor<half> yLocal = bufY.Get<half>();
  LocalTensor<half> zLocal = bufZ.Get<half>();
  GlobalTensor<half> xGm, yGm, zGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + GetBlockIdx() * PER_CORE, PER_CORE);
  yGm.SetGlobalBuffer((__gm__ half*)y + GetBlockIdx() * PER_CORE, PER_CORE);
  zGm.SetGlobalBuffer((__gm__ half*)z + GetBlockIdx() * PER_CORE, PER_CORE);
  for (int i = 0; i < PER_CORE / TILE_LEN; ++i) {
    DataCopy(xLocal, xGm[i * TILE_LEN], TILE_LEN);
    DataCopy(yLocal, yGm[i * TILE_LEN], TILE_LEN);
    pipe_barrier(PIPE_ALL);
    Add(zLocal, xLocal, yLocal, TILE_LEN);
    pipe_barrier(PIPE_ALL);
    DataCopy(zGm[i * TILE_LEN], zLocal, TILE_LEN);
    pipe_barrier(PIPE_ALL);
  }
}
