// c = half(a x b) + d in half, [1024, 1024] x [1024, 1024]: each group makes 128 x 256 of the product in steps of 64 on
// its cube core, which hands it through the workspace to its two vector cores; they add d in tiles of 64 x 64.
//   STAGES  1: every step is copied, waited for and multiplied; the vector cores' tiles, too
//           3: copies two steps ahead, but a barrier of all pipes around each product; two buffers for the vector cores
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t SIZE = 1024, ROWS = 128, COLUMNS = 256, STEP = 64, STEPS = SIZE / STEP, ACROSS = SIZE / COLUMNS;
constexpr uint32_t TILE = 64, TILES = COLUMNS / TILE, BUFFERS = STAGES == 1 ? 1 : 2;

__aicore__ inline void CopyIn(const LocalTensor<half>& a1, const LocalTensor<half>& b1, const GlobalTensor<half>& a,
                              const GlobalTensor<half>& b, uint32_t step) {
  const uint32_t at = step % STAGES;
  DataCopy(a1[at * ROWS * STEP], a[step * STEP], Nd2NzParams(1, ROWS, STEP, 0, SIZE, ROWS, 1, 0));
  DataCopy(b1[at * STEP * COLUMNS], b[step * STEP * SIZE], Nd2NzParams(1, STEP, COLUMNS, 0, SIZE, STEP, 1, 0));
}

template <HardEvent event>
__aicore__ inline void Wait(int32_t id) {
  SetFlag<event>(id);
  WaitFlag<event>(id);
}

__aicore__ inline void Multiply(const LocalTensor<float>& c, const LocalTensor<half>& a1, const LocalTensor<half>& b1,
                                bool first) {
  LocalTensor<half> a2(TPosition::A2, 0, ROWS * STEP), b2(TPosition::B2, 0, STEP * COLUMNS);
  Wait<HardEvent::MTE2_MTE1>(0);
  Wait<HardEvent::FIX_M>(0);
  for (uint32_t row = 0; row < ROWS / 16; row++)
    LoadData(a2[row * 16 * STEP], a1[row * 256], LoadData2DParams(0, STEP / 16, ROWS / 16, 0, 0, false, 0));
  for (uint32_t row = 0; row < STEP / 16; row++)
    LoadData(b2[row * 16 * COLUMNS], b1[row * 256], LoadData2DParams(0, COLUMNS / 16, STEP / 16, 0, 0, true, 0));
  Wait<HardEvent::MTE1_M>(0);
  PipeBarrier<PIPE_M>();
  MmadParams product;
  product.m = ROWS;
  product.n = COLUMNS;
  product.k = STEP;
  product.cmatrixInitVal = first;
  Mmad(c, a2, b2, product);
  Wait<HardEvent::M_MTE1>(0);
  Wait<HardEvent::MTE1_MTE2>(0);
  Wait<HardEvent::M_FIX>(0);
}

__aicore__ inline void Add(const GlobalTensor<half>& c, const GlobalTensor<half>& product,
                           const GlobalTensor<half>& d) {
  const uint32_t size = TILE * TILE;
  const DataCopyExtParams in(TILE, TILE * sizeof(half), (SIZE - TILE) * sizeof(half), 0, 0);
  const DataCopyExtParams out(TILE, TILE * sizeof(half), 0, (SIZE - TILE) * sizeof(half), 0);
  LocalTensor<half> x(TPosition::VECCALC, 0, BUFFERS * size), y(TPosition::VECCALC, BUFFERS * size * 2, BUFFERS * size),
      sum(TPosition::VECCALC, 2 * BUFFERS * size * 2, size);
  for (uint32_t tile = 0; tile < BUFFERS - 1; tile++) {
    DataCopyPad(x[tile * size], product[tile * TILE], in, DataCopyPadExtParams<half>());
    DataCopyPad(y[tile * size], d[tile * TILE], in, DataCopyPadExtParams<half>());
  }
  for (uint32_t tile = 0; tile < TILES; tile++) {
    const uint32_t ahead = tile + BUFFERS - 1, to = ahead % BUFFERS * size, from = tile % BUFFERS * size;
    if (ahead < TILES) {
      Wait<HardEvent::V_MTE2>(3);
      DataCopyPad(x[to], product[ahead * TILE], in, DataCopyPadExtParams<half>());
      DataCopyPad(y[to], d[ahead * TILE], in, DataCopyPadExtParams<half>());
    }
    Wait<HardEvent::MTE2_V>(1);
    Wait<HardEvent::MTE3_V>(5);
    AscendC::Add(sum, x[from], y[from], size);
    Wait<HardEvent::V_MTE3>(2);
    DataCopyPad(c[tile * TILE], sum, out);
  }
}

extern "C" __global__ __aicore__ void matmul_add(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR d, GM_ADDR workspace) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  const uint32_t group = GetBlockIdx() / GetTaskRation(), row = group / ACROSS * ROWS,
                 column = group % ACROSS * COLUMNS;
  GlobalTensor<half> as, bs, cs, ds, products;
  as.SetGlobalBuffer((__gm__ half*)a + row * SIZE);
  bs.SetGlobalBuffer((__gm__ half*)b + column);
  if ASCEND_IS_AIC {
    products.SetGlobalBuffer((__gm__ half*)workspace + row * SIZE + column);
    LocalTensor<half> a1(TPosition::A1, 0, STAGES * ROWS * STEP),
        b1(TPosition::A1, STAGES * ROWS * STEP * 2, STAGES * STEP * COLUMNS);
    LocalTensor<float> product(TPosition::CO1, 0, ROWS * COLUMNS);
    for (uint32_t step = 0; step < STAGES - 1; step++) CopyIn(a1, b1, as, bs, step);
    for (uint32_t step = 0; step < STEPS; step++) {
      if (step + STAGES - 1 < STEPS) CopyIn(a1, b1, as, bs, step + STAGES - 1);
      PipeBarrier<PIPE_ALL>();
      Multiply(product, a1[step % STAGES * ROWS * STEP], b1[step % STAGES * STEP * COLUMNS], step == 0);
      PipeBarrier<PIPE_ALL>();
    }
    FixpipeParamsV220 out;
    out.nSize = COLUMNS;
    out.mSize = ROWS;
    out.srcStride = ROWS;
    out.dstStride = SIZE;
    out.quantPre = QuantMode_t::F322F16;
    out.ndNum = 1;
    Fixpipe<half, float, CFG_ROW_MAJOR>(products, product, out);
    CrossCoreSetFlag<2, PIPE_FIX>(0);
  }
  if ASCEND_IS_AIV {
    const uint32_t half_rows = row + GetSubBlockIdx() * ROWS / 2;
    cs.SetGlobalBuffer((__gm__ half*)c + half_rows * SIZE + column);
    ds.SetGlobalBuffer((__gm__ half*)d + half_rows * SIZE + column);
    products.SetGlobalBuffer((__gm__ half*)workspace + half_rows * SIZE + column);
    CrossCoreWaitFlag(0);
    Add(cs, products, ds);
  }
}
