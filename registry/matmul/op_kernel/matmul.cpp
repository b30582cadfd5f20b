// c = a x b + bias, rows of all in global memory, those of b along n, or along k where it is TURNED. A core computes
// singleM x singleN of c, one base block after another: k is brought to L1 in steps of stepK base blocks, to L0A and L0B
// in base blocks, and summed up in L0C. With BIASED the first sum of a block starts from the bias.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t SIDE = 16;           // rows of a tile, and elements in one of its rows
constexpr uint32_t TILE = SIDE * SIDE;  // elements
constexpr uint32_t PIECE = 64;          // bytes that the table of biases is filled with at a time
constexpr uint32_t BIASES = 32;         // a multiple of what is in one of them, whatever the type
constexpr uint32_t SUMS_IN_ORDER = 10;  // tiles of c from which on the core itself orders sums of one base block

__aicore__ inline uint32_t Min(uint32_t a, uint32_t b) { return a < b ? a : b; }
__aicore__ inline uint32_t Align(uint32_t a, uint32_t b) { return (a + b - 1) / b * b; }
__aicore__ inline uint32_t Tiles(uint32_t length) { return (length + SIDE - 1) / SIDE; }

template <typename In, typename Out, bool BIASED, bool TURNED>
class KernelMatmul {
  using Bias = typename std::conditional<std::is_same<In, half>::value, half, float>::type;

 public:
  __aicore__ inline KernelMatmul() {}

  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, const MatmulTilingData& tiling,
                              TPipe* pipe) {
    t = tiling;
    aGm.SetGlobalBuffer((__gm__ In*)a, static_cast<uint64_t>(t.m) * t.k);
    bGm.SetGlobalBuffer((__gm__ In*)b, static_cast<uint64_t>(t.k) * t.n);
    if constexpr (BIASED) {
      biasGm.SetGlobalBuffer((__gm__ Bias*)bias, t.n);
      pipe->InitBuffer(c1, 1, Align(t.baseN, BIASES) * sizeof(Bias));
      pipe->InitBuffer(c2, 1, Align(t.baseN, BIASES) * sizeof(float));
    }
    cGm.SetGlobalBuffer((__gm__ Out*)c, static_cast<uint64_t>(t.m) * t.n);
    const uint32_t alongM = (t.m + t.singleM - 1) / t.singleM;
    firstM = GetBlockIdx() % alongM * t.singleM;
    firstN = GetBlockIdx() / alongM * t.singleN;
    endM = Min(t.m, firstM + t.singleM);
    endN = Min(t.n, firstN + t.singleN);
    const uint32_t widthK = t.baseK * t.stepK;
    pipe->InitBuffer(a1, t.l1Buffers, t.baseM * widthK * sizeof(In));
    pipe->InitBuffer(b1, t.l1Buffers, t.baseN * widthK * sizeof(In));
    pipe->InitBuffer(a2, t.l0Buffers, t.baseM * t.baseK * sizeof(In));
    pipe->InitBuffer(b2, t.l0Buffers, t.baseN * t.baseK * sizeof(In));
    pipe->InitBuffer(co1, t.l0cBuffers, t.baseM * t.baseN * sizeof(float));
  }

  __aicore__ inline void Process() {
    for (uint32_t n = firstN; n < endN; n += t.baseN) {
      const uint32_t columns = Min(t.baseN, endN - n);
      if constexpr (BIASED) {
        LoadBias(n, columns);
        biases = c2.template DeQue<float>();
      }
      for (uint32_t m = firstM; m < endM; m += t.baseM) {
        Block(m, n, Min(t.baseM, endM - m), columns);
      }
      if constexpr (BIASED) {
        c2.FreeTensor(biases);
      }
    }
  }

 private:
  // To the table of biases, which holds floats. Copied as one row of tiles, so that any number can be.
  __aicore__ inline void LoadBias(uint32_t n, uint32_t columns) {
    LocalTensor<Bias> row = c1.template AllocTensor<Bias>();
    Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = 1;
    params.dValue = columns;
    params.srcDValue = columns;
    params.dstNzC0Stride = 1;
    params.dstNzNStride = 1;
    DataCopy(row, biasGm[n], params);
    c1.EnQue(row);
    row = c1.template DeQue<Bias>();
    LocalTensor<float> table = c2.template AllocTensor<float>();
    const uint16_t pieces = Align(columns, BIASES) * sizeof(Bias) / PIECE;
    DataCopy(table, row, DataCopyParams(1, pieces, 0, 0));
    c2.EnQue(table);
    c1.FreeTensor(row);
  }

  __aicore__ inline void Block(uint32_t m, uint32_t n, uint32_t rows, uint32_t columns) {
    LocalTensor<float> sums = co1.template AllocTensor<float>();
    const uint32_t widthK = t.baseK * t.stepK;
    for (uint32_t k = 0; k < t.k; k += widthK) {
      const uint32_t depth = Min(widthK, t.k - k);
      CopyIn(m, n, k, rows, columns, depth);
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
  __aicore__ inline void CopyIn(uint32_t m, uint32_t n, uint32_t k, uint32_t rows, uint32_t columns, uint32_t depth) {
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
    if constexpr (TURNED) {
      params.nValue = columns;
      params.dstNzC0Stride = Tiles(columns) * SIDE;
      DataCopy(bTiles, bGm[static_cast<uint64_t>(n) * t.k + k], params);
    } else {
      params.nValue = depth;
      params.dValue = columns;
      params.srcDValue = t.n;
      params.dstNzC0Stride = Tiles(depth) * SIDE;
      DataCopy(bTiles, bGm[static_cast<uint64_t>(k) * t.n + n], params);
    }
    a1.EnQue(aTiles);
    b1.EnQue(bTiles);
  }

  // Tiles of a go row by row to L0A; those of b, turned where its rows were along n, row by row to L0B.
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
    params.srcStride = TURNED ? 1 : Tiles(depth);
    params.ifTranspose = !TURNED;
    for (uint32_t i = 0; i < k1; i++) {
      LoadData(bLocal[i * n1 * TILE], bTiles[(first + i) * (TURNED ? n1 : 1) * TILE], params);
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
    params.cmatrixInitVal = first && !BIASED;
    if (BIASED && first) {
      Mmad(sums, aLocal, bLocal, biases, params);
    } else {
      Mmad(sums, aLocal, bLocal, params);
    }
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
  TQue<TPosition::C1, 1> c1;
  TQue<TPosition::C2, 1> c2;
  LocalTensor<float> biases;
  GlobalTensor<In> aGm, bGm;
  GlobalTensor<Bias> biasGm;
  GlobalTensor<Out> cGm;
  MatmulTilingData t;
  uint32_t firstM, firstN, endM, endN;
};

template <typename In, typename Out, bool BIASED, bool TURNED>
__aicore__ inline void Run(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, const MatmulTilingData& tiling) {
  TPipe pipe;
  KernelMatmul<In, Out, BIASED, TURNED> op;
  op.Init(a, b, bias, c, tiling, &pipe);
  op.Process();
}

extern "C" __global__ __aicore__ void matmul(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace,
                                             GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  GET_TILING_DATA(tilingData, tiling);
  if (TILING_KEY_IS(0)) {
    Run<DTYPE_A, DTYPE_C, false, false>(a, b, bias, c, tilingData);
  } else if (TILING_KEY_IS(1)) {
    Run<DTYPE_A, DTYPE_C, true, false>(a, b, bias, c, tilingData);
  } else if (TILING_KEY_IS(2)) {
    Run<DTYPE_A, DTYPE_C, false, true>(a, b, bias, c, tilingData);
  } else if (TILING_KEY_IS(3)) {
    Run<DTYPE_A, DTYPE_C, true, true>(a, b, bias, c, tilingData);
  }
}
