// y = leaky_relu(a x b). The cube core of a group multiplies blocks of 32 rows of a with all of b (k and n at most 128,
// multiples of 16) and leaves them in the group's slots of the workspace; its two vector cores take half a block each.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t ROWS = 32, SIDE = 16;
constexpr uint16_t THERE = 0, FREE = 1;  // flags: a slot holds a product; both vector cores have read it

class OnCube {
 public:
  __aicore__ inline void Run(GM_ADDR a, GM_ADDR b, GM_ADDR workspace, const MatmulLeakyTilingData& t, TPipe* pipe) {
    GlobalTensor<half> aGm, bGm;
    GlobalTensor<float> slots;
    aGm.SetGlobalBuffer((__gm__ half*)a);
    bGm.SetGlobalBuffer((__gm__ half*)b);
    slots.SetGlobalBuffer((__gm__ float*)workspace + GetBlockIdx() * t.slots * ROWS * t.n);
    pipe->InitBuffer(a1, 2, ROWS * t.k * sizeof(half));
    pipe->InitBuffer(b1, 1, t.k * t.n * sizeof(half));
    pipe->InitBuffer(a2, 2, ROWS * t.k * sizeof(half));
    pipe->InitBuffer(b2, 1, t.k * t.n * sizeof(half));
    pipe->InitBuffer(co1, 2, ROWS * t.n * sizeof(float));
    BringInB(bGm, t);
    LocalTensor<half> bTiles = b2.DeQue<half>();
    uint32_t done = 0;
    for (uint32_t row = GetBlockIdx() * ROWS; row < t.m; row += GetBlockNum() * ROWS, done++) {
      const uint32_t rows = t.m - row < ROWS ? t.m - row : ROWS;
      LocalTensor<float> product = Multiply(aGm[static_cast<uint64_t>(row) * t.k], bTiles, rows, t);
      if (done >= t.slots) CrossCoreWaitFlag(FREE);
      Fixpipe(slots[done % t.slots * ROWS * t.n], product, FixpipeParamsV220(t.n, rows, ROWS, t.n, false));
      CrossCoreSetFlag<2, PIPE_FIX>(THERE);
      co1.FreeTensor(product);
    }
    for (uint32_t i = done < t.slots ? done : t.slots; i > 0; i--) CrossCoreWaitFlag(FREE);
    b2.FreeTensor(bTiles);
  }

 private:
  __aicore__ inline void BringInB(const GlobalTensor<half>& bGm, const MatmulLeakyTilingData& t) {
    LocalTensor<half> rows = b1.AllocTensor<half>();
    DataCopy(rows, bGm, Nd2NzParams(1, t.k, t.n, 0, t.n, t.k, 1, 0));
    b1.EnQue(rows);
    rows = b1.DeQue<half>();
    LocalTensor<half> tiles = b2.AllocTensor<half>();
    for (uint32_t i = 0; i < t.k / SIDE; i++)
      LoadData(tiles[i * t.n * SIDE], rows[i * SIDE * SIDE],
               LoadData2DParams(0, t.n / SIDE, t.k / SIDE, 0, 0, true, 0));
    b2.EnQue(tiles);
    b1.FreeTensor(rows);
  }

  __aicore__ inline LocalTensor<float> Multiply(const GlobalTensor<half>& aGm, LocalTensor<half>& b, uint32_t rows,
                                                const MatmulLeakyTilingData& t) {
    LocalTensor<half> l1 = a1.AllocTensor<half>();
    DataCopy(l1, aGm, Nd2NzParams(1, rows, t.k, 0, t.k, ROWS, 1, 0));
    a1.EnQue(l1);
    l1 = a1.DeQue<half>();
    LocalTensor<half> tiles = a2.AllocTensor<half>();
    for (uint32_t i = 0; i < ROWS / SIDE; i++)
      LoadData(tiles[i * t.k * SIDE], l1[i * SIDE * SIDE],
               LoadData2DParams(0, t.k / SIDE, ROWS / SIDE, 0, 0, false, 0));
    a2.EnQue(tiles);
    a1.FreeTensor(l1);
    tiles = a2.DeQue<half>();
    LocalTensor<float> product = co1.AllocTensor<float>();
    MmadParams params;
    params.m = ROWS;
    params.n = t.n;
    params.k = t.k;
    Mmad(product, tiles, b, params);
    a2.FreeTensor(tiles);
    co1.EnQue(product);
    return co1.DeQue<float>();
  }

  TQue<TPosition::A1, 2> a1;
  TQue<TPosition::B1, 1> b1;
  TQue<TPosition::A2, 2> a2;
  TQue<TPosition::B2, 1> b2;
  TQue<TPosition::CO1, 2> co1;
};

class OnVector {
 public:
  __aicore__ inline void Run(GM_ADDR y, GM_ADDR workspace, const MatmulLeakyTilingData& t, TPipe* pipe) {
    const uint32_t group = GetBlockIdx() / GetTaskRatio(), half = ROWS / 2;
    GlobalTensor<float> slots, yGm;
    slots.SetGlobalBuffer((__gm__ float*)workspace + group * t.slots * ROWS * t.n);
    yGm.SetGlobalBuffer((__gm__ float*)y);
    pipe->InitBuffer(in, 2, half * t.n * sizeof(float));
    pipe->InitBuffer(out, 2, half * t.n * sizeof(float));
    uint32_t done = 0;
    for (uint32_t row = group * ROWS; row < t.m; row += GetBlockNum() * ROWS, done++) {
      const uint32_t first = row + GetSubBlockIdx() * half;
      const uint32_t rows = first >= t.m ? 0 : t.m - first < half ? t.m - first : half;
      CrossCoreWaitFlag(THERE);
      if (rows > 0) CopyIn(slots[(done % t.slots * ROWS + GetSubBlockIdx() * half) * t.n], rows * t.n);
      CrossCoreSetFlag<2, PIPE_MTE2>(FREE);
      if (rows > 0) Compute(yGm[static_cast<uint64_t>(first) * t.n], rows * t.n);
    }
  }

 private:
  __aicore__ inline void CopyIn(const GlobalTensor<float>& slot, uint32_t count) {
    LocalTensor<float> x = in.AllocTensor<float>();
    DataCopy(x, slot, count);
    in.EnQue(x);
  }
  __aicore__ inline void Compute(const GlobalTensor<float>& yGm, uint32_t count) {
    LocalTensor<float> x = in.DeQue<float>();
    LocalTensor<float> y = out.AllocTensor<float>();
    LeakyRelu(y, x, 0.01f, count);
    in.FreeTensor(x);
    out.EnQue(y);
    y = out.DeQue<float>();
    DataCopy(yGm, y, count);
    out.FreeTensor(y);
  }

  TQue<TPosition::VECIN, 2> in;
  TQue<TPosition::VECOUT, 2> out;
};

extern "C" __global__ __aicore__ void matmul_leaky(GM_ADDR a, GM_ADDR b, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  GET_TILING_DATA(t, tiling);
  GM_ADDR slots = GetUserWorkspace(workspace);
  TPipe pipe;
  if ASCEND_IS_AIC {
    OnCube cube;
    cube.Run(a, b, slots, t, &pipe);
  }
  if ASCEND_IS_AIV {
    OnVector vector;
    vector.Run(y, slots, t, &pipe);
  }
}
