// c = a x b of its expert for each row of a. Base blocks are counted through the groups and dealt to the cores in turn;
// k is brought to L1 in steps of stepK base blocks, to L0A and L0B in base blocks, and summed up in L0C.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t SIDE = 16;           // rows of a tile, and elements in one of its rows
constexpr uint32_t TILE = SIDE * SIDE;  // elements
constexpr uint32_t SUMS_IN_ORDER = 10;  // tiles of c from which on the core itself orders sums of one base block

__aicore__ inline uint32_t Min(uint32_t a, uint32_t b) { return a < b ? a : b; }
__aicore__ inline uint32_t Tiles(uint32_t length) { return (length + SIDE - 1) / SIDE; }

template <typename In, typename Out>
class KernelGroupedMatmul {
 public:
  __aicore__ inline KernelGroupedMatmul() {}

  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR counts, GM_ADDR c, const GroupedMatmulTilingData& tiling,
                              TPipe* pipe) {
    t = tiling;
    aGm.SetGlobalBuffer((__gm__ In*)a, static_cast<uint64_t>(t.m) * t.k);
    bGm.SetGlobalBuffer((__gm__ In*)b, static_cast<uint64_t>(t.groups) * t.k * t.n);
    countsGm.SetGlobalBuffer((__gm__ int64_t*)counts, t.groups);
    cGm.SetGlobalBuffer((__gm__ Out*)c, static_cast<uint64_t>(t.m) * t.n);
    const uint32_t widthK = t.baseK * t.stepK;
    pipe->InitBuffer(a1, t.l1Buffers, t.baseM * widthK * sizeof(In));
    pipe->InitBuffer(b1, t.l1Buffers, t.baseN * widthK * sizeof(In));
    pipe->InitBuffer(a2, t.l0Buffers, t.baseM * t.baseK * sizeof(In));
    pipe->InitBuffer(b2, t.l0Buffers, t.baseN * t.baseK * sizeof(In));
    pipe->InitBuffer(co1, t.l0cBuffers, t.baseM * t.baseN * sizeof(float));
  }

  __aicore__ inline void Process() {
    uint32_t first = 0, block = 0;
    for (uint32_t group = 0; group < t.groups && first < t.m; group++) {
      const uint32_t rows = Rows(group, first);
      for (uint32_t n = 0; n < t.n; n += t.baseN) {
        for (uint32_t m = 0; m < rows; m += t.baseM, block++) {
          if (block % GetBlockNum() == GetBlockIdx()) {
            Block(group, first + m, n, Min(t.baseM, rows - m), Min(t.baseN, t.n - n));
          }
        }
      }
      first += rows;
    }
  }

 private:
  // Of a group that begins at row `first`; the last one has all that are left.
  __aicore__ inline uint32_t Rows(uint32_t group, uint32_t first) {
    if (group + 1 == t.groups) {
      return t.m - first;
    }
    return Min(static_cast<uint32_t>(countsGm.GetValue(group)), t.m - first);
  }

  __aicore__ inline void Block(uint32_t group, uint32_t m, uint32_t n, uint32_t rows, uint32_t columns) {
    LocalTensor<float> sums = co1.template AllocTensor<float>();
    const uint32_t widthK = t.baseK * t.stepK;
    for (uint32_t k = 0; k < t.k; k += widthK) {
      const uint32_t depth = Min(widthK, t.k - k);
      CopyIn(group, m, n, k, rows, columns, depth);
      LocalTensor<In> aTiles = a1.template DeQue<In>();
      LocalTensor<In> bTiles = b1.template DeQue<In>();
      for (uint32_t inner = 0; inner < depth; inner += t.baseK) {
        const uint32_t length = Min(t.baseK, depth - inner);
        Load(aTiles, bTiles, inner, rows, columns, depth, length);
        Compute(sums, rows, columns, length, k + inner == 0);
      }
      a1.FreeTensor(aTiles);
      b1.FreeTensor(bTiles);
    }
    co1.EnQue(sums);
    CopyOut(m, n, rows, columns);
  }

  // Rows of global memory become columns of tiles in L1.
  __aicore__ inline void CopyIn(uint32_t group, uint32_t m, uint32_t n, uint32_t k, uint32_t rows, uint32_t columns,
                                uint32_t depth) {
    LocalTensor<In> aTiles = a1.template AllocTensor<In>();
    LocalTensor<In> bTiles = b1.template AllocTensor<In>();
    Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = rows;
    params.dValue = depth;
    params.srcDValue = t.k;
    params.dstNzC0Stride = Tiles(rows) * SIDE;
    params.dstNzNStride = 1;
    DataCopy(aTiles, aGm[static_cast<uint64_t>(m) * t.k + k], params);
    params.nValue = depth;
    params.dValue = columns;
    params.srcDValue = t.n;
    params.dstNzC0Stride = Tiles(depth) * SIDE;
    DataCopy(bTiles, bGm[(static_cast<uint64_t>(group) * t.k + k) * t.n + n], params);
    a1.EnQue(aTiles);
    b1.EnQue(bTiles);
  }

  // Tiles of a go row by row to L0A; those of b, turned, row by row to L0B.
  __aicore__ inline void Load(const LocalTensor<In>& aTiles, const LocalTensor<In>& bTiles, uint32_t inner,
                              uint32_t rows, uint32_t columns, uint32_t depth, uint32_t length) {
    LocalTensor<In> aLocal = a2.template AllocTensor<In>();
    LocalTensor<In> bLocal = b2.template AllocTensor<In>();
    const uint32_t m1 = Tiles(rows), n1 = Tiles(columns), k1 = Tiles(length), first = inner / SIDE;
    LoadData2DParams params;
    params.repeatTimes = k1;
    params.srcStride = m1;
    for (uint32_t i = 0; i < m1; i++) {
      LoadData(aLocal[i * k1 * TILE], aTiles[(first * m1 + i) * TILE], params);
    }
    params.repeatTimes = n1;
    params.srcStride = Tiles(depth);
    params.ifTranspose = true;
    for (uint32_t i = 0; i < k1; i++) {
      LoadData(bLocal[i * n1 * TILE], bTiles[(first + i) * TILE], params);
    }
    a2.EnQue(aLocal);
    b2.EnQue(bLocal);
  }

  __aicore__ inline void Compute(const LocalTensor<float>& sums, uint32_t rows, uint32_t columns, uint32_t length,
                                 bool first) {
    LocalTensor<In> aLocal = a2.template DeQue<In>();
    LocalTensor<In> bLocal = b2.template DeQue<In>();
    MmadParams params;
    params.m = rows == 1 ? SIDE : rows;  // with one row the core would take a for a vector
    params.n = columns;
    params.k = length;
    params.cmatrixInitVal = first;
    Mmad(sums, aLocal, bLocal, params);
    if (Tiles(rows) * Tiles(columns) < SUMS_IN_ORDER) {
      PipeBarrier<PIPE_M>();
    }
    a2.FreeTensor(aLocal);
    b2.FreeTensor(bLocal);
  }

  __aicore__ inline void CopyOut(uint32_t m, uint32_t n, uint32_t rows, uint32_t columns) {
    LocalTensor<float> sums = co1.template DeQue<float>();
    FixpipeParamsV220 params;
    params.nSize = columns;
    params.mSize = rows;
    params.srcStride = Tiles(rows) * SIDE;
    params.dstStride = t.n;
    if constexpr (std::is_same<Out, half>::value) {
      params.quantPre = QuantMode_t::F322F16;
    } else if constexpr (std::is_same<Out, bfloat16_t>::value) {
      params.quantPre = QuantMode_t::F322BF16;
    }
    Fixpipe<Out, float, CFG_ROW_MAJOR>(cGm[static_cast<uint64_t>(m) * t.n + n], sums, params);
    co1.FreeTensor(sums);
  }

  TQue<TPosition::A1, 2> a1;
  TQue<TPosition::B1, 2> b1;
  TQue<TPosition::A2, 2> a2;
  TQue<TPosition::B2, 2> b2;
  TQue<TPosition::CO1, 2> co1;
  GlobalTensor<In> aGm, bGm;
  GlobalTensor<int64_t> countsGm;
  GlobalTensor<Out> cGm;
  GroupedMatmulTilingData t;
};

extern "C" __global__ __aicore__ void grouped_matmul(GM_ADDR a, GM_ADDR b, GM_ADDR counts, GM_ADDR c, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelGroupedMatmul<DTYPE_A, DTYPE_C> op;
  op.Init(a, b, counts, c, tilingData, &pipe);
  op.Process();
}
