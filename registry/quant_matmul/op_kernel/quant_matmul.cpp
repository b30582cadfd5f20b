// c = (a x b transposed) * scale: rows of int8, summed up exactly in L0C, made half by a word for each column on their
// way out. A core computes singleM x singleN of c, one base block after another.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t SIDE = 16;            // rows of a tile
constexpr uint32_t DEPTH = 32;           // elements in one of its rows
constexpr uint32_t TILE = SIDE * DEPTH;  // elements
constexpr uint32_t SUMS_IN_ORDER = 10;   // tiles of c from which on the core itself orders sums of one base block
constexpr uint32_t WORDS = 16;           // that the Fixpipe buffer is filled with at a time

__aicore__ inline uint32_t Min(uint32_t a, uint32_t b) { return a < b ? a : b; }
__aicore__ inline uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

class KernelQuantMatmul {
 public:
  __aicore__ inline KernelQuantMatmul() {}

  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR scale, GM_ADDR c, const QuantMatmulTilingData& tiling,
                              TPipe* tPipe) {
    t = tiling;
    pipe = tPipe;
    aGm.SetGlobalBuffer((__gm__ int8_t*)a, static_cast<uint64_t>(t.m) * t.k);
    bGm.SetGlobalBuffer((__gm__ int8_t*)b, static_cast<uint64_t>(t.n) * t.k);
    scaleGm.SetGlobalBuffer((__gm__ int32_t*)scale, 2ULL * t.n);
    cGm.SetGlobalBuffer((__gm__ half*)c, static_cast<uint64_t>(t.m) * t.n);
    const uint32_t alongM = CeilDiv(t.m, t.singleM);
    firstM = GetBlockIdx() % alongM * t.singleM;
    firstN = GetBlockIdx() / alongM * t.singleN;
    endM = Min(t.m, firstM + t.singleM);
    endN = Min(t.n, firstN + t.singleN);
    const uint32_t widthK = t.baseK * t.stepK;
    pipe->InitBuffer(a1, t.l1Buffers, t.baseM * widthK);
    pipe->InitBuffer(b1, t.l1Buffers, t.baseN * widthK);
    pipe->InitBuffer(words, CeilDiv(t.baseN, WORDS) * WORDS * sizeof(uint64_t));
    pipe->InitBuffer(a2, t.l0Buffers, t.baseM * t.baseK);
    pipe->InitBuffer(b2, t.l0Buffers, t.baseN * t.baseK);
    pipe->InitBuffer(co1, t.l0cBuffers, t.baseM * t.baseN * sizeof(int32_t));
  }

  __aicore__ inline void Process() {
    const auto wordsFree = pipe->AllocEventID<HardEvent::FIX_MTE2>();
    for (uint32_t n = firstN; n < endN; n += t.baseN) {
      const uint32_t columns = Min(t.baseN, endN - n);
      if (n > firstN) {
        WaitFlag<HardEvent::FIX_MTE2>(wordsFree);
      }
      CopyScale(n, columns);
      for (uint32_t m = firstM; m < endM; m += t.baseM) {
        Block(m, n, Min(t.baseM, endM - m), columns);
      }
      if (n + t.baseN < endN) {
        SetFlag<HardEvent::FIX_MTE2>(wordsFree);
      }
    }
    pipe->ReleaseEventID<HardEvent::FIX_MTE2>(wordsFree);
  }

 private:
  // As one row of tiles, which lie one behind the other: so any number of words can be copied.
  __aicore__ inline void CopyScale(uint32_t n, uint32_t columns) {
    Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = 1;
    params.dValue = 2 * columns;
    params.srcDValue = 2 * columns;
    params.dstNzC0Stride = 1;
    params.dstNzNStride = 1;
    DataCopy(words.Get<int32_t>(), scaleGm[2ULL * n], params);
    const auto there = pipe->FetchEventID(HardEvent::MTE2_FIX);
    SetFlag<HardEvent::MTE2_FIX>(there);
    WaitFlag<HardEvent::MTE2_FIX>(there);
  }

  __aicore__ inline void Block(uint32_t m, uint32_t n, uint32_t rows, uint32_t columns) {
    LocalTensor<int32_t> sums = co1.AllocTensor<int32_t>();
    const uint32_t widthK = t.baseK * t.stepK;
    for (uint32_t k = 0; k < t.k; k += widthK) {
      const uint32_t depth = Min(widthK, t.k - k);
      CopyIn(m, n, k, rows, columns, depth);
      LocalTensor<int8_t> aTiles = a1.DeQue<int8_t>();
      LocalTensor<int8_t> bTiles = b1.DeQue<int8_t>();
      for (uint32_t inner = 0; inner < depth; inner += t.baseK) {
        const uint32_t length = Min(t.baseK, depth - inner);
        Load(aTiles, bTiles, inner, rows, columns, length);
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
    LocalTensor<int8_t> aTiles = a1.AllocTensor<int8_t>();
    LocalTensor<int8_t> bTiles = b1.AllocTensor<int8_t>();
    Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = rows;
    params.dValue = depth;
    params.srcDValue = t.k;
    params.dstNzC0Stride = CeilDiv(rows, SIDE) * SIDE;
    params.dstNzNStride = 1;
    DataCopy(aTiles, aGm[static_cast<uint64_t>(m) * t.k + k], params);
    params.nValue = columns;
    params.dstNzC0Stride = CeilDiv(columns, SIDE) * SIDE;
    DataCopy(bTiles, bGm[static_cast<uint64_t>(n) * t.k + k], params);
    a1.EnQue(aTiles);
    b1.EnQue(bTiles);
  }

  // Tiles of a go row by row to L0A; those of b lie in L1 as L0B wants them.
  __aicore__ inline void Load(const LocalTensor<int8_t>& aTiles, const LocalTensor<int8_t>& bTiles, uint32_t inner,
                              uint32_t rows, uint32_t columns, uint32_t length) {
    LocalTensor<int8_t> aLocal = a2.AllocTensor<int8_t>();
    LocalTensor<int8_t> bLocal = b2.AllocTensor<int8_t>();
    const uint32_t m1 = CeilDiv(rows, SIDE), n1 = CeilDiv(columns, SIDE), k1 = CeilDiv(length, DEPTH);
    const uint32_t first = inner / DEPTH;
    LoadData2DParams params;
    params.repeatTimes = k1;
    params.srcStride = m1;
    for (uint32_t i = 0; i < m1; i++) {
      LoadData(aLocal[i * k1 * TILE], aTiles[(first * m1 + i) * TILE], params);
    }
    params.repeatTimes = n1;
    params.srcStride = 1;
    for (uint32_t i = 0; i < k1; i++) {
      LoadData(bLocal[i * n1 * TILE], bTiles[(first + i) * n1 * TILE], params);
    }
    a2.EnQue(aLocal);
    b2.EnQue(bLocal);
  }

  __aicore__ inline void Compute(const LocalTensor<int32_t>& sums, uint32_t rows, uint32_t columns, uint32_t length,
                                 bool first) {
    LocalTensor<int8_t> aLocal = a2.DeQue<int8_t>();
    LocalTensor<int8_t> bLocal = b2.DeQue<int8_t>();
    MmadParams params;
    params.m = rows == 1 ? SIDE : rows;  // with one row the core would take a for a vector
    params.n = columns;
    params.k = length;
    params.cmatrixInitVal = first;
    Mmad(sums, aLocal, bLocal, params);
    if (CeilDiv(rows, SIDE) * CeilDiv(columns, SIDE) < SUMS_IN_ORDER) {
      PipeBarrier<PIPE_M>();
    }
    a2.FreeTensor(aLocal);
    b2.FreeTensor(bLocal);
  }

  __aicore__ inline void CopyOut(uint32_t m, uint32_t n, uint32_t rows, uint32_t columns) {
    LocalTensor<int32_t> sums = co1.DeQue<int32_t>();
    FixpipeParamsV220 params;
    params.nSize = columns;
    params.mSize = rows;
    params.srcStride = CeilDiv(rows, SIDE) * SIDE;
    params.dstStride = t.n;
    params.quantPre = QuantMode_t::VDEQF16;
    Fixpipe<half, int32_t, CFG_ROW_MAJOR>(cGm[static_cast<uint64_t>(m) * t.n + n], sums, words.Get<uint64_t>(), params);
    PipeBarrier<PIPE_FIX>();  // the next words go where these were
    co1.FreeTensor(sums);
  }

  TPipe* pipe;
  TQue<TPosition::A1, 2> a1;
  TQue<TPosition::B1, 2> b1;
  TBuf<TPosition::C1> words;
  TQue<TPosition::A2, 2> a2;
  TQue<TPosition::B2, 2> b2;
  TQue<TPosition::CO1, 2> co1;
  GlobalTensor<int8_t> aGm, bGm;
  GlobalTensor<int32_t> scaleGm;
  GlobalTensor<half> cGm;
  QuantMatmulTilingData t;
  uint32_t firstM, firstN, endM, endN;
};

extern "C" __global__ __aicore__ void quant_matmul(GM_ADDR a, GM_ADDR b, GM_ADDR scale, GM_ADDR c, GM_ADDR workspace,
                                                   GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelQuantMatmul op;
  op.Init(a, b, scale, c, tilingData, &pipe);
  op.Process();
}
