// o = softmax(q k^T scale) v. A group takes blocks of queries of one head, and looks at one block of keys after
// another: its cube core multiplies, its two vector cores have half of the queries each. They meet in the workspace.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t SIDE = 16;                              // rows of a tile, and elements in one of its rows
constexpr uint32_t TILE = SIDE * SIDE;                     // elements
constexpr uint32_t REPEAT = 64;                            // floats of a vector instruction's turn
constexpr uint32_t FLOATS = 8;                             // of 32 bytes
constexpr uint32_t SLOTS = 2;                              // of scores and weights
constexpr uint32_t VECTORS = 2;                            // vector cores of a group
constexpr float MASKED = -3.4028234e38f;                   // a score that doesn't count: no finite one is less
constexpr uint16_t SCORES = 0, WEIGHTS = 1, PRODUCTS = 2;  // flags: these are in the workspace

__aicore__ inline uint32_t Min(uint32_t a, uint32_t b) { return a < b ? a : b; }
__aicore__ inline uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
__aicore__ inline uint32_t Align(uint32_t a, uint32_t b) { return CeilDiv(a, b) * b; }

// What both kinds of cores have in common: which block is whose, and where in the workspace they meet.
template <typename T>
class Attention {
 public:
  __aicore__ inline Attention() {}

 protected:
  __aicore__ inline void Meet(GM_ADDR workspace, const FlashAttentionTilingData& tiling, uint32_t ofGroup) {
    t = tiling;
    group = ofGroup;
    const uint64_t block = static_cast<uint64_t>(t.blockQ) * t.blockK, groups = GetBlockNum();
    __gm__ float* sums = (__gm__ float*)workspace;
    scores.SetGlobalBuffer(sums + group * SLOTS * block, SLOTS * block);
    sums += groups * SLOTS * block;
    products.SetGlobalBuffer(sums + group * t.blockQ * t.depth, t.blockQ * t.depth);
    sums += groups * t.blockQ * t.depth;
    weights.SetGlobalBuffer((__gm__ T*)sums + group * SLOTS * block, SLOTS * block);
  }

  // Block `item` of all: which queries of which head, and how many keys they see.
  __aicore__ inline void Choose(uint32_t item) {
    const uint32_t blocks = CeilDiv(t.queries, t.blockQ);
    head = item / blocks;
    first = item % blocks * t.blockQ;
    rows = Min(t.blockQ, t.queries - first);
    seen = t.causal ? t.keys - t.queries + first + rows : t.keys;
  }

  __aicore__ inline uint32_t Items() { return t.heads * CeilDiv(t.queries, t.blockQ); }
  __aicore__ inline uint64_t Slot(uint32_t step) { return step % SLOTS * static_cast<uint64_t>(t.blockQ) * t.blockK; }

  FlashAttentionTilingData t;
  GlobalTensor<float> scores, products;
  GlobalTensor<T> weights;
  uint32_t group, head, first, rows, seen;
};

template <typename T>
class OnCube : public Attention<T> {
 public:
  __aicore__ inline OnCube() {}

  __aicore__ inline void Init(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR workspace,
                              const FlashAttentionTilingData& tiling, TPipe* pipe) {
    this->Meet(workspace, tiling, GetBlockIdx());
    const uint64_t row = this->t.depth;
    qGm.SetGlobalBuffer((__gm__ T*)q, this->t.heads * this->t.queries * row);
    kGm.SetGlobalBuffer((__gm__ T*)k, this->t.heads * this->t.keys * row);
    vGm.SetGlobalBuffer((__gm__ T*)v, this->t.heads * this->t.keys * row);
    const uint32_t depth = Align(this->t.depth, SIDE), blockQ = this->t.blockQ, blockK = this->t.blockK;
    const uint32_t side = depth > blockK ? depth : blockK;
    pipe->InitBuffer(q1, 1, blockQ * depth * sizeof(T));
    pipe->InitBuffer(k1, 2, blockK * depth * sizeof(T));
    pipe->InitBuffer(v1, 2, blockK * depth * sizeof(T));
    pipe->InitBuffer(p1, 2, blockQ * blockK * sizeof(T));
    pipe->InitBuffer(a2, 2, blockQ * side * sizeof(T));
    pipe->InitBuffer(b2, 2, blockK * depth * sizeof(T));
    pipe->InitBuffer(co1, 2, blockQ * side * sizeof(float));
  }

  __aicore__ inline void Process() {
    uint32_t step = 0;
    for (uint32_t item = this->group; item < this->Items(); item += GetBlockNum()) {
      this->Choose(item);
      LocalTensor<T> q = q1.template AllocTensor<T>();
      CopyIn(q, qGm[(static_cast<uint64_t>(this->head) * this->t.queries + this->first) * this->t.depth], this->rows,
             this->t.depth, this->t.depth);
      q1.EnQue(q);
      q = q1.template DeQue<T>();
      Score(q, 0, step);
      for (uint32_t key = 0; key < this->seen; key += this->t.blockK, step++) {
        if (key + this->t.blockK < this->seen) {
          Score(q, key + this->t.blockK, step + 1);
        }
        CrossCoreWaitFlag(WEIGHTS);
        Multiply(key, step);
      }
      q1.FreeTensor(q);
    }
  }

 private:
  // Scores of the keys from `key` on: rows of q times rows of k.
  __aicore__ inline void Score(const LocalTensor<T>& q, uint32_t key, uint32_t step) {
    const uint32_t columns = Min(this->t.blockK, this->seen - key);
    LocalTensor<T> k = k1.template AllocTensor<T>();
    CopyIn(k, kGm[RowOf(key)], columns, this->t.depth, this->t.depth);
    k1.EnQue(k);
    k = k1.template DeQue<T>();
    LoadA(q, this->rows, this->t.depth);
    LocalTensor<T> b = b2.template AllocTensor<T>();
    const uint32_t n1 = CeilDiv(columns, SIDE), k1Tiles = CeilDiv(this->t.depth, SIDE);
    LoadData2DParams params;
    params.repeatTimes = n1;
    params.srcStride = 1;
    for (uint32_t i = 0; i < k1Tiles; i++) {
      LoadData(b[i * n1 * TILE], k[i * n1 * TILE], params);
    }
    b2.EnQue(b);
    k1.FreeTensor(k);
    Product(this->scores[this->Slot(step)], columns, this->t.depth, this->t.blockK);
    CrossCoreSetFlag<2, PIPE_FIX>(SCORES);
  }

  // Weights times the rows of v from `key` on.
  __aicore__ inline void Multiply(uint32_t key, uint32_t step) {
    const uint32_t length = Min(this->t.blockK, this->seen - key);
    LocalTensor<T> p = p1.template AllocTensor<T>();
    LocalTensor<T> v = v1.template AllocTensor<T>();
    CopyIn(p, this->weights[this->Slot(step)], this->rows, length, this->t.blockK);
    CopyIn(v, vGm[RowOf(key)], length, this->t.depth, this->t.depth);
    p1.EnQue(p);
    v1.EnQue(v);
    p = p1.template DeQue<T>();
    v = v1.template DeQue<T>();
    LoadA(p, this->rows, length);
    LocalTensor<T> b = b2.template AllocTensor<T>();
    const uint32_t n1 = CeilDiv(this->t.depth, SIDE), kTiles = CeilDiv(length, SIDE);
    LoadData2DParams params;
    params.repeatTimes = n1;
    params.srcStride = kTiles;
    params.ifTranspose = true;
    for (uint32_t i = 0; i < kTiles; i++) {
      LoadData(b[i * n1 * TILE], v[i * TILE], params);
    }
    b2.EnQue(b);
    p1.FreeTensor(p);
    v1.FreeTensor(v);
    Product(this->products, this->t.depth, length, this->t.depth);
    CrossCoreSetFlag<2, PIPE_FIX>(PRODUCTS);
  }

  __aicore__ inline uint64_t RowOf(uint32_t key) {
    return (static_cast<uint64_t>(this->head) * this->t.keys + key) * this->t.depth;
  }

  // Rows of global memory become columns of tiles in L1.
  __aicore__ inline void CopyIn(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t high, uint32_t wide,
                                uint32_t pitch) {
    Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = high;
    params.dValue = wide;
    params.srcDValue = pitch;
    params.dstNzC0Stride = Align(high, SIDE);
    params.dstNzNStride = 1;
    DataCopy(to, from, params);
  }

  // Columns of tiles go row by row to L0A.
  __aicore__ inline void LoadA(const LocalTensor<T>& tiles, uint32_t high, uint32_t wide) {
    LocalTensor<T> a = a2.template AllocTensor<T>();
    const uint32_t m1 = CeilDiv(high, SIDE), kTiles = CeilDiv(wide, SIDE);
    LoadData2DParams params;
    params.repeatTimes = kTiles;
    params.srcStride = m1;
    for (uint32_t i = 0; i < m1; i++) {
      LoadData(a[i * kTiles * TILE], tiles[i * TILE], params);
    }
    a2.EnQue(a);
  }

  __aicore__ inline void Product(const GlobalTensor<float>& to, uint32_t columns, uint32_t length, uint32_t pitch) {
    LocalTensor<T> a = a2.template DeQue<T>();
    LocalTensor<T> b = b2.template DeQue<T>();
    LocalTensor<float> sums = co1.template AllocTensor<float>();
    MmadParams params;
    params.m = this->rows == 1 ? SIDE : this->rows;  // with one row the core would take a for a vector
    params.n = columns;
    params.k = length;
    Mmad(sums, a, b, params);
    a2.FreeTensor(a);
    b2.FreeTensor(b);
    co1.EnQue(sums);
    sums = co1.template DeQue<float>();
    FixpipeParamsV220 out;
    out.nSize = columns;
    out.mSize = this->rows;
    out.srcStride = Align(this->rows, SIDE);
    out.dstStride = pitch;
    Fixpipe<float, float, CFG_ROW_MAJOR>(to, sums, out);
    co1.FreeTensor(sums);
  }

  TQue<TPosition::A1, 1> q1;
  TQue<TPosition::B1, 2> k1, v1;
  TQue<TPosition::A1, 2> p1;
  TQue<TPosition::A2, 2> a2;
  TQue<TPosition::B2, 2> b2;
  TQue<TPosition::CO1, 2> co1;
  GlobalTensor<T> qGm, kGm, vGm;
};

template <typename T>
class OnVector : public Attention<T> {
 public:
  __aicore__ inline OnVector() {}

  __aicore__ inline void Init(GM_ADDR o, GM_ADDR workspace, const FlashAttentionTilingData& tiling, TPipe* pipe) {
    this->Meet(workspace, tiling, GetBlockIdx() / VECTORS);
    oGm.SetGlobalBuffer((__gm__ T*)o, static_cast<uint64_t>(this->t.heads) * this->t.queries * this->t.depth);
    share = this->t.blockQ / VECTORS;
    width = this->t.blockK;
    depth = Align(this->t.depth, SIDE);
    const uint32_t numbers = Align(share, REPEAT) * sizeof(float);
    pipe->InitBuffer(scoresIn, 1, share * width * sizeof(float));
    pipe->InitBuffer(weightsOut, 1, share * width * sizeof(T));
    pipe->InitBuffer(productsIn, 1, share * depth * sizeof(float));
    pipe->InitBuffer(resultOut, 1, share * depth * sizeof(T));
    pipe->InitBuffer(sumBuf, share * depth * sizeof(float));
    pipe->InitBuffer(laneBuf, share * REPEAT * sizeof(float));
    pipe->InitBuffer(blockBuf, Align(share, FLOATS) * FLOATS * sizeof(float));
    pipe->InitBuffer(maximumBuf, numbers);
    pipe->InitBuffer(totalBuf, numbers);
    pipe->InitBuffer(newBuf, numbers);
    pipe->InitBuffer(factorBuf, numbers);
  }

  __aicore__ inline void Process() {
    uint32_t step = 0;
    for (uint32_t item = this->group; item < this->Items(); item += GetBlockNum()) {
      this->Choose(item);
      const uint32_t begin = GetSubBlockIdx() * share;
      mine = begin < this->rows ? Min(share, this->rows - begin) : 0;
      Begin();
      for (uint32_t key = 0; key < this->seen; key += width, step++) {
        CrossCoreWaitFlag(SCORES);
        if (mine > 0) {
          Weigh(begin, key, step);
        }
        CrossCoreSetFlag<2, PIPE_MTE3>(WEIGHTS);
        CrossCoreWaitFlag(PRODUCTS);
        if (mine > 0) {
          AddUp(begin);
        }
      }
      if (mine > 0) {
        CopyOut(begin);
      }
    }
  }

 private:
  __aicore__ inline void Begin() {
    Duplicate(maximumBuf.Get<float>(), MASKED, Align(share, REPEAT));
    Duplicate(totalBuf.Get<float>(), 0.0f, Align(share, REPEAT));
    Duplicate(sumBuf.Get<float>(), 0.0f, share * depth);
    PipeBarrier<PIPE_V>();
  }

  // Scores become weights, and the maximum and the sum of each row are brought up to date.
  __aicore__ inline void Weigh(uint32_t begin, uint32_t key, uint32_t step) {
    const uint32_t columns = Min(width, this->seen - key);
    LocalTensor<float> s = scoresIn.AllocTensor<float>();
    const DataCopyExtParams copy{static_cast<uint16_t>(mine), static_cast<uint32_t>(columns * sizeof(float)),
                                 static_cast<uint32_t>((width - columns) * sizeof(float)),
                                 (width - Align(columns, FLOATS)) / FLOATS, 0};
    DataCopyPad(s, this->scores[this->Slot(step) + begin * width], copy, DataCopyPadExtParams<float>{false, 0, 0, 0});
    scoresIn.EnQue(s);
    s = scoresIn.DeQue<float>();
    Mask(s, begin, key, columns);
    Muls(s, s, this->t.scale, mine * width);
    PipeBarrier<PIPE_V>();
    Maximum(s);
    LocalTensor<float> block = blockBuf.Get<float>();
    Brcb(block, newBuf.Get<float>(), CeilDiv(mine, FLOATS), {1, FLOATS});
    PipeBarrier<PIPE_V>();
    const uint8_t pitch = width / FLOATS;
    for (uint32_t column = 0; column < width; column += REPEAT) {
      Sub(s[column], s[column], block, REPEAT, mine, {1, 1, 0, pitch, pitch, 1});
    }
    PipeBarrier<PIPE_V>();
    Exp(s, s, mine * width);
    PipeBarrier<PIPE_V>();
    Total(s);
    LocalTensor<T> w = weightsOut.template AllocTensor<T>();
    Cast(w, s, RoundMode::CAST_RINT, mine * width);
    weightsOut.EnQue(w);
    scoresIn.FreeTensor(s);
    w = weightsOut.template DeQue<T>();
    DataCopy(this->weights[this->Slot(step) + begin * width], w, mine * width);
    weightsOut.FreeTensor(w);
  }

  // Scores that don't count: behind the last key, and behind what a query may see.
  __aicore__ inline void Mask(const LocalTensor<float>& s, uint32_t begin, uint32_t key, uint32_t columns) {
    for (uint32_t row = 0; row < mine; row++) {
      uint32_t visible = columns;
      if (this->t.causal) {
        const uint32_t sees = this->t.keys - this->t.queries + this->first + begin + row + 1;
        visible = sees > key ? Min(columns, sees - key) : 0;
      }
      for (uint32_t column = 0; column < width; column += REPEAT) {
        const uint32_t kept = visible > column ? visible - column : 0;
        if (kept < REPEAT) {
          uint64_t mask[2] = {~0ULL << kept, 0};
          Duplicate(s[row * width + column], MASKED, mask, 1, 1, FLOATS);
        }
      }
    }
    PipeBarrier<PIPE_V>();
  }

  // The largest score of each row so far, and by which factor what was added up before has to shrink.
  __aicore__ inline void Maximum(const LocalTensor<float>& s) {
    LocalTensor<float> lane = laneBuf.Get<float>(), old = maximumBuf.Get<float>(), now = newBuf.Get<float>();
    LocalTensor<float> factor = factorBuf.Get<float>();
    const uint8_t pitch = width / FLOATS;
    Adds(lane, s, 0.0f, REPEAT, mine, {1, 1, FLOATS, pitch});
    PipeBarrier<PIPE_V>();
    for (uint32_t column = REPEAT; column < width; column += REPEAT) {
      Max(lane, lane, s[column], REPEAT, mine, {1, 1, 1, FLOATS, FLOATS, pitch});
      PipeBarrier<PIPE_V>();
    }
    WholeReduceMax(now, lane, REPEAT, mine, 1, 1, FLOATS, ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    Max(now, now, old, mine);
    PipeBarrier<PIPE_V>();
    Sub(factor, old, now, mine);
    PipeBarrier<PIPE_V>();
    Exp(factor, factor, mine);
    Adds(old, now, 0.0f, mine);
    PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void Total(const LocalTensor<float>& s) {
    LocalTensor<float> lane = laneBuf.Get<float>(), total = totalBuf.Get<float>(), now = newBuf.Get<float>();
    const uint8_t pitch = width / FLOATS;
    Adds(lane, s, 0.0f, REPEAT, mine, {1, 1, FLOATS, pitch});
    PipeBarrier<PIPE_V>();
    for (uint32_t column = REPEAT; column < width; column += REPEAT) {
      Add(lane, lane, s[column], REPEAT, mine, {1, 1, 1, FLOATS, FLOATS, pitch});
      PipeBarrier<PIPE_V>();
    }
    WholeReduceSum(now, lane, REPEAT, mine, 1, 1, FLOATS);
    Mul(total, total, factorBuf.Get<float>(), mine);
    PipeBarrier<PIPE_V>();
    Add(total, total, now, mine);
    PipeBarrier<PIPE_V>();
  }

  // What came of the weights is added to what there is, which shrinks first.
  __aicore__ inline void AddUp(uint32_t begin) {
    LocalTensor<float> x = productsIn.AllocTensor<float>();
    CopyProducts(x, begin);
    productsIn.EnQue(x);
    x = productsIn.DeQue<float>();
    LocalTensor<float> sum = sumBuf.Get<float>(), block = blockBuf.Get<float>();
    Brcb(block, factorBuf.Get<float>(), CeilDiv(mine, FLOATS), {1, FLOATS});
    PipeBarrier<PIPE_V>();
    const uint8_t pitch = depth / FLOATS;
    for (uint32_t column = 0; column < this->t.depth; column += REPEAT) {
      const uint64_t wide = Min(REPEAT, this->t.depth - column);
      Mul(sum[column], sum[column], block, wide, mine, {1, 1, 0, pitch, pitch, 1});
      PipeBarrier<PIPE_V>();
      Add(sum[column], sum[column], x[column], wide, mine, {1, 1, 1, pitch, pitch, pitch});
    }
    PipeBarrier<PIPE_V>();
    productsIn.FreeTensor(x);
  }

  __aicore__ inline void CopyProducts(const LocalTensor<float>& x, uint32_t begin) {
    const DataCopyExtParams copy{static_cast<uint16_t>(mine), static_cast<uint32_t>(this->t.depth * sizeof(float)), 0,
                                 (depth - Align(this->t.depth, FLOATS)) / FLOATS, 0};
    DataCopyPad(x, this->products[begin * this->t.depth], copy, DataCopyPadExtParams<float>{false, 0, 0, 0});
  }

  __aicore__ inline void CopyOut(uint32_t begin) {
    LocalTensor<float> sum = sumBuf.Get<float>(), block = blockBuf.Get<float>();
    LocalTensor<T> y = resultOut.template AllocTensor<T>();
    Brcb(block, totalBuf.Get<float>(), CeilDiv(mine, FLOATS), {1, FLOATS});
    PipeBarrier<PIPE_V>();
    const uint8_t pitch = depth / FLOATS;
    for (uint32_t column = 0; column < this->t.depth; column += REPEAT) {
      Div(sum[column], sum[column], block, Min(REPEAT, this->t.depth - column), mine, {1, 1, 0, pitch, pitch, 1});
    }
    PipeBarrier<PIPE_V>();
    Cast(y, sum, RoundMode::CAST_RINT, mine * depth);
    resultOut.EnQue(y);
    y = resultOut.template DeQue<T>();
    const DataCopyExtParams copy{static_cast<uint16_t>(mine), static_cast<uint32_t>(this->t.depth * sizeof(T)), 0, 0,
                                 0};
    DataCopyPad(oGm[(static_cast<uint64_t>(this->head) * this->t.queries + this->first + begin) * this->t.depth], y,
                copy);
    resultOut.FreeTensor(y);
  }

  TQue<TPosition::VECIN, 1> scoresIn, productsIn;
  TQue<TPosition::VECOUT, 1> weightsOut, resultOut;
  TBuf<TPosition::VECCALC> sumBuf, laneBuf, blockBuf, maximumBuf, totalBuf, newBuf, factorBuf;
  GlobalTensor<T> oGm;
  uint32_t share, width, depth, mine;
};

extern "C" __global__ __aicore__ void flash_attention(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR o, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  GET_TILING_DATA(tilingData, tiling);
  GM_ADDR meeting = GetUserWorkspace(workspace);
  TPipe pipe;
  if ASCEND_IS_AIC {
    OnCube<DTYPE_Q> cube;
    cube.Init(q, k, v, meeting, tilingData, &pipe);
    cube.Process();
  }
  if ASCEND_IS_AIV {
    OnVector<DTYPE_Q> vector;
    vector.Init(o, meeting, tilingData, &pipe);
    vector.Process();
  }
}
