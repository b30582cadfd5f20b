// y = leaky_relu(a x b), round by round: the cube core of a group multiplies a block of 32 rows of a with all of b (k and
// n at most 128, multiples of 16) and leaves the product in the workspace; all cores meet; the two vector cores of the
// group take half a block each; all cores meet, as the next product goes to the same place.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t ROWS = 32, SIDE = 16;

class Rounds {
 public:
  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR y, GM_ADDR workspace, const MatmulMeetingTilingData& tiling,
                              TPipe* pipe) {
    t = &tiling;
    aGm.SetGlobalBuffer((__gm__ half*)a);
    bGm.SetGlobalBuffer((__gm__ half*)b);
    yGm.SetGlobalBuffer((__gm__ float*)y);
    products.SetGlobalBuffer((__gm__ float*)workspace);
    if ASCEND_IS_AIC {
      group = GetBlockIdx();
      pipe->InitBuffer(a1, 1, ROWS * t->k * sizeof(half));
      pipe->InitBuffer(b1, 1, t->k * t->n * sizeof(half));
      pipe->InitBuffer(a2, 1, ROWS * t->k * sizeof(half));
      pipe->InitBuffer(b2, 1, t->k * t->n * sizeof(half));
      pipe->InitBuffer(co1, 1, ROWS * t->n * sizeof(float));
    } else {
      group = GetBlockIdx() / GetTaskRatio();
      pipe->InitBuffer(in, 1, ROWS / 2 * t->n * sizeof(float));
      pipe->InitBuffer(out, 1, ROWS / 2 * t->n * sizeof(float));
    }
  }

  __aicore__ inline void Process() {
    if ASCEND_IS_AIC BringInB();
    for (uint32_t round = 0; round < t->rounds; round++) {
      const uint32_t row = (round * GetBlockNum() + group) * ROWS;
      if ASCEND_IS_AIC {
        if (row < t->m) Multiply(row);
      }
      SyncAll<false>();
      if ASCEND_IS_AIV {
        if (row < t->m) Activate(row);
      }
      SyncAll<false>();
    }
    if ASCEND_IS_AIC b2.FreeTensor(bTiles);
  }

 private:
  __aicore__ inline void BringInB() {
    LocalTensor<half> rows = b1.AllocTensor<half>();
    DataCopy(rows, bGm, Nd2NzParams(1, t->k, t->n, 0, t->n, t->k, 1, 0));
    b1.EnQue(rows);
    rows = b1.DeQue<half>();
    LocalTensor<half> tiles = b2.AllocTensor<half>();
    for (uint32_t i = 0; i < t->k / SIDE; i++)
      LoadData(tiles[i * t->n * SIDE], rows[i * SIDE * SIDE],
               LoadData2DParams(0, t->n / SIDE, t->k / SIDE, 0, 0, true, 0));
    b2.EnQue(tiles);
    b1.FreeTensor(rows);
    bTiles = b2.DeQue<half>();
  }

  __aicore__ inline void Multiply(uint32_t row) {
    const uint32_t rows = t->m - row < ROWS ? t->m - row : ROWS;
    LocalTensor<half> l1 = a1.AllocTensor<half>();
    DataCopy(l1, aGm[static_cast<uint64_t>(row) * t->k], Nd2NzParams(1, rows, t->k, 0, t->k, ROWS, 1, 0));
    a1.EnQue(l1);
    l1 = a1.DeQue<half>();
    LocalTensor<half> tiles = a2.AllocTensor<half>();
    for (uint32_t i = 0; i < ROWS / SIDE; i++)
      LoadData(tiles[i * t->k * SIDE], l1[i * SIDE * SIDE],
               LoadData2DParams(0, t->k / SIDE, ROWS / SIDE, 0, 0, false, 0));
    a2.EnQue(tiles);
    a1.FreeTensor(l1);
    tiles = a2.DeQue<half>();
    LocalTensor<float> product = co1.AllocTensor<float>();
    MmadParams params;
    params.m = ROWS;
    params.n = t->n;
    params.k = t->k;
    Mmad(product, tiles, bTiles, params);
    a2.FreeTensor(tiles);
    co1.EnQue(product);
    product = co1.DeQue<float>();
    Fixpipe(products[group * ROWS * t->n], product, FixpipeParamsV220(t->n, rows, ROWS, t->n, false));
    co1.FreeTensor(product);
  }

  __aicore__ inline void Activate(uint32_t row) {
    const uint32_t half = ROWS / 2, mine = GetSubBlockIdx() * half, first = row + mine;
    if (first >= t->m) return;
    const uint32_t count = (t->m - first < half ? t->m - first : half) * t->n;
    LocalTensor<float> x = in.AllocTensor<float>();
    DataCopy(x, products[(group * ROWS + mine) * t->n], count);
    in.EnQue(x);
    x = in.DeQue<float>();
    LocalTensor<float> y = out.AllocTensor<float>();
    LeakyRelu(y, x, 0.01f, count);
    in.FreeTensor(x);
    out.EnQue(y);
    y = out.DeQue<float>();
    DataCopy(yGm[static_cast<uint64_t>(first) * t->n], y, count);
    out.FreeTensor(y);
  }

  TQue<TPosition::A1, 1> a1;
  TQue<TPosition::B1, 1> b1;
  TQue<TPosition::A2, 1> a2;
  TQue<TPosition::B2, 1> b2;
  TQue<TPosition::CO1, 1> co1;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  GlobalTensor<half> aGm, bGm;
  GlobalTensor<float> yGm, products;
  LocalTensor<half> bTiles;
  const MatmulMeetingTilingData* t;
  uint32_t group;
};

extern "C" __global__ __aicore__ void matmul_meeting(GM_ADDR a, GM_ADDR b, GM_ADDR y, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  GET_TILING_DATA(t, tiling);
  TPipe pipe;
  Rounds rounds;
  rounds.Init(a, b, y, GetUserWorkspace(workspace), t, &pipe);
  rounds.Process();
}
