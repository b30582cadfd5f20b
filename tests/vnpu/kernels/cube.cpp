// Kernels on cube cores for test_cube.py and test_cube_hazards.py: whole chains of instructions whose parameters come
// from the test, one synchronization after another that can be left out, and products without anything around them.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kHalfOfL1 = 262144;

template <typename T>
GlobalTensor<T> global(GM_ADDR p) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p));
  return t;
}

uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

template <HardEvent event>
void Order() {
  SetFlag<event>(EVENT_ID0);
  WaitFlag<event>(EVENT_ID0);
}

// ---- GM -> L1 as tiles, and L1 as it is -> GM ----
struct TilesCase {
  uint32_t matrices, rows, columns, matrixStride, rowStride, c0Stride, nStride, tiledStride, bytes;
};

template <typename T>
void Tiles(GM_ADDR src, GM_ADDR dst, const TilesCase& p) {
  LocalTensor<half> all(TPosition::A1, 0, p.bytes / 2);
  Fill(all, InitConstValueParams<half>(1, static_cast<uint16_t>(p.bytes / 32), 0, half(7)));
  PipeBarrier<PIPE_MTE2>();
  LocalTensor<T> l1(TPosition::A1, 0, p.bytes / sizeof(T));
  DataCopy(
      l1, global<T>(src),
      Nd2NzParams(p.matrices, p.rows, p.columns, p.matrixStride, p.rowStride, p.c0Stride, p.nStride, p.tiledStride));
  Order<HardEvent::MTE2_MTE3>();
  DataCopy(global<half>(dst), all, p.bytes / 2);
}
extern "C" __global__ __cube__ void tiles_b16(GM_ADDR src, GM_ADDR dst, TilesCase p) { Tiles<half>(src, dst, p); }
extern "C" __global__ __cube__ void tiles_b8(GM_ADDR src, GM_ADDR dst, TilesCase p) { Tiles<int8_t>(src, dst, p); }
extern "C" __global__ __cube__ void tiles_b32(GM_ADDR src, GM_ADDR dst, TilesCase p) { Tiles<float>(src, dst, p); }

// ---- C = A x B + bias, each operand as rows or as columns ----
struct ProductCase {
  uint32_t m, n, k, aColumns, bColumns, start;  // start: 0 zero, 1 twice the product, 2 the bias
  uint32_t out, relu, stride;                   // out: 0 rows, 1 tiles; stride: of C, in elements or 32-byte blocks
  uint32_t quant;
  uint64_t word;
};

// Rows of a matrix in GM, or columns: what is contiguous becomes the tiles' rows.
template <typename T>
void BringIn(LocalTensor<T> l1, GM_ADDR src, uint32_t rows, uint32_t columns, uint32_t multiple) {
  const uint16_t tall = static_cast<uint16_t>(CeilDiv(rows, multiple) * multiple);
  DataCopy(l1, global<T>(src), Nd2NzParams(1, rows, columns, 0, columns, tall, 1, 0));
}

template <typename T>
constexpr uint32_t kC0 = 32 / sizeof(T);
template <typename T>
constexpr uint32_t kTile = 16 * kC0<T>;

// Tiles of L1, column by column of `tall` tiles, to row by row (A), tiles as they are.
template <typename T>
void AsTheyAre(LocalTensor<T> l0, LocalTensor<T> l1, uint32_t tall, uint32_t wide) {
  for (uint32_t i = 0; i < tall; i++)
    LoadData(l0[i * wide * kTile<T>], l1[i * kTile<T>], LoadData2DParams(0, wide, tall, 0, 0, false, 0));
}

// 2-byte elements: of a [rows, columns] matrix in L1, columns of tiles to `across` first, every tile turned.
template <typename T>
void Turned(LocalTensor<T> l0, LocalTensor<T> l1, uint32_t tall, uint32_t wide) {
  for (uint32_t i = 0; i < tall; i++)
    LoadData(l0[i * wide * kTile<T>], l1[i * kTile<T>], LoadData2DParams(0, wide, tall, 0, 0, true, 0));
}

template <typename T>
void LoadA(LocalTensor<T> a2, LocalTensor<T> a1, const ProductCase& p) {
  const uint32_t m1 = CeilDiv(p.m, 16), k1 = CeilDiv(p.k, kC0<T>);
  if (!p.aColumns) {
    if (p.m == 1) return LoadData(a2, a1, LoadData2DParams(0, CeilDiv(k1, 16), 1, 0, 0, false, 0));
    AsTheyAre(a2, a1, m1, k1);
  } else if constexpr (sizeof(T) == 2) {  // L1 holds [k, m]: for every row of A's tiles a column of L1's
    for (uint32_t i = 0; i < m1; i++)
      LoadData(a2[i * k1 * kTile<T>], a1[i * k1 * kTile<T>], LoadData2DParams(0, k1, 1, 0, 0, true, 0));
  } else if constexpr (sizeof(T) == 1) {  // squares of 32 x 32: two rows of A's tiles at once
    for (uint32_t i = 0; i < CeilDiv(p.m, 32); i++)
      LoadDataWithTranspose(a2[i * 2 * k1 * kTile<T>], a1[i * 2 * k1 * kTile<T>],
                            LoadData2dTransposeParams(0, k1, 1, 0, static_cast<uint16_t>(k1 - 1)));
  }
}

template <typename T>
void LoadB(LocalTensor<T> b2, LocalTensor<T> b1, const ProductCase& p) {
  const uint32_t n1 = CeilDiv(p.n, 16), k1 = CeilDiv(p.k, kC0<T>);
  if (p.bColumns) {  // L1 holds [n, k]: its tiles are B's
    LoadData(b2, b1, LoadData2DParams(0, n1 * k1, 1, 0, 0, false, 0));
  } else if constexpr (sizeof(T) == 2) {
    Turned(b2, b1, k1, n1);
  } else if constexpr (sizeof(T) == 1) {  // squares of 32 x 32: two columns of B's tiles at once
    const uint32_t squares = CeilDiv(p.n, 32);
    for (uint32_t i = 0; i < k1; i++)
      LoadDataWithTranspose(b2[i * 2 * squares * kTile<T>], b1[i * 2 * kTile<T>],
                            LoadData2dTransposeParams(0, squares, static_cast<uint16_t>(k1), 1, 0));
  }
}

template <typename T, typename C>
void Multiply(LocalTensor<C> c, GM_ADDR a, GM_ADDR b, GM_ADDR bias, const ProductCase& p) {
  LocalTensor<T> a1(TPosition::A1, 0, kHalfOfL1 / sizeof(T) / 2),
      b1(TPosition::B1, kHalfOfL1 / 2, 65536 / sizeof(T) * 2);
  LocalTensor<C> c1(TPosition::C1, kHalfOfL1, 256), bt(TPosition::C2, 0, 256);
  LocalTensor<T> a2(TPosition::A2, 0, 65536 / sizeof(T)), b2(TPosition::B2, 0, 65536 / sizeof(T));
  const uint32_t high = sizeof(T) == 1 ? 32 : 16;  // squares are as high
  if (p.m == 1 && !p.aColumns)
    DataCopy(a1, global<T>(a), Nd2NzParams(1, 1, p.k, 0, p.k, 1, 1, 0));
  else if (p.aColumns)
    BringIn(a1, a, p.k, p.m, high);
  else
    BringIn(a1, a, p.m, p.k, 16);
  p.bColumns ? BringIn(b1, b, p.n, p.k, 16) : BringIn(b1, b, p.k, p.n, high);
  const Nd2NzParams row(1, 1, p.n, 0, p.n, 1, 1, 0);
  LocalTensor<half> narrow(TPosition::C1, kHalfOfL1, 256);
  p.start == 3 ? DataCopy(narrow, global<half>(bias), row) : DataCopy(c1, global<C>(bias), row);
  Order<HardEvent::MTE2_MTE1>();
  LoadA(a2, a1, p);
  LoadB(b2, b1, p);
  const uint16_t blocks = CeilDiv(p.n * (p.start == 3 ? sizeof(half) : sizeof(C)), 64);  // of what is copied
  if constexpr (std::is_same_v<C, float>)
    if (p.start == 3) DataCopy(bt, narrow, DataCopyParams(1, blocks, 0, 0));
  if (p.start != 3) DataCopy(bt, c1, DataCopyParams(1, blocks, 0, 0));
  Order<HardEvent::MTE1_M>();
  MmadParams params;
  params.m = p.m;
  params.n = !p.bColumns && sizeof(T) == 1 ? CeilDiv(p.n, 32) * 32 : p.n;
  params.k = p.k;
  if (p.start >= 2) {
    params.cmatrixInitVal = false;
    Mmad(c, a2, b2, bt, params);
  } else {
    Mmad(c, a2, b2, params);
  }
  if (p.start == 1) {
    PipeBarrier<PIPE_M>();
    params.cmatrixInitVal = false;
    Mmad(c, a2, b2, params);
  }
  Order<HardEvent::M_FIX>();
}

template <typename C, typename O>
void BringOut(GM_ADDR out, LocalTensor<C> c, const ProductCase& p) {
  FixpipeParamsV220 params(static_cast<uint16_t>(p.out ? CeilDiv(p.n, 16) * 16 : p.n), p.m, CeilDiv(p.m, 16) * 16,
                           p.stride, p.relu != 0);
  params.quantPre = static_cast<QuantMode_t>(p.quant);
  params.deqScalar = p.word;
  params.isChannelSplit = p.out == 2;
  if (p.out)
    Fixpipe<O, C, CFG_NZ>(global<O>(out), c, params);
  else
    Fixpipe<O, C, CFG_ROW_MAJOR>(global<O>(out), c, params);
}

template <typename T, typename C, typename O>
void Product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR out, const ProductCase& p) {
  LocalTensor<C> c(TPosition::CO1, 0, 131072 / sizeof(C));
  Multiply<T>(c, a, b, bias, p);
  BringOut<C, O>(out, c, p);
}
#define PRODUCT(NAME, T, C, O)                                                                               \
  extern "C" __global__ __cube__ void NAME(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR out, ProductCase p) { \
    Product<T, C, O>(a, b, bias, out, p);                                                                    \
  }
// Floats rounded first: mode 1 ties to even, 2 towards zero, 3 switched off again.
extern "C" __global__ __cube__ void rounded_first(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR out, uint32_t mode,
                                                  ProductCase p) {
  SetHF32Mode(HF32Mode::ENABLE);
  SetHF32TransMode(mode == 2 ? HF32TransMode::NEAREST_ZERO : HF32TransMode::NEAREST_EVEN);
  if (mode == 3) SetHF32Mode(false);
  Product<float, float, float>(a, b, bias, out, p);
}
PRODUCT(float16_float32, half, float, float)
PRODUCT(float16_float16, half, float, half)
PRODUCT(bfloat16_float32, bfloat16_t, float, float)
PRODUCT(bfloat16_bfloat16, bfloat16_t, float, bfloat16_t)
PRODUCT(float32_float32, float, float, float)
PRODUCT(float16_int8, half, float, int8_t)
PRODUCT(int8_int32, int8_t, int32_t, int32_t)
PRODUCT(int8_float16, int8_t, int32_t, half)
PRODUCT(int8_int8, int8_t, int32_t, int8_t)

// A word for each column, by the register or by the call that brings them in itself; the other copy of results.
extern "C" __global__ __cube__ void dequantized(GM_ADDR a, GM_ADDR b, GM_ADDR words, GM_ADDR out, uint32_t by,
                                                ProductCase p) {
  LocalTensor<int32_t> c(TPosition::CO1, 0, 32768);
  LocalTensor<uint64_t> l1(TPosition::C1, 2 * kHalfOfL1 - 2048, 256), fb(TPosition::C2PIPE2GM, 0, 256);
  Multiply<int8_t>(c, a, b, words, p);
  DataCopy(l1, global<uint64_t>(words), CeilDiv(p.n, 16) * 16);
  Order<HardEvent::MTE2_FIX>();
  if (by == 0 || by == 3) {
    FixpipeParamsV220 params(p.n, p.m, CeilDiv(p.m, 16) * 16, p.stride, p.relu != 0);
    params.quantPre = by == 0 ? VDEQF16 : DEQF16;
    params.deqScalar = p.word;
    Fixpipe(global<half>(out), c, l1, params);
    return;
  }
  SetFixpipeNz2ndFlag(1, 0, 0);
  if (by == 2) {
    SetFixpipePreQuantFlag(p.word);
    DataCopy(global<half>(out), c,
             DataCopyCO12DstParams(p.n, p.m, p.stride, CeilDiv(p.m, 16) * 16, DEQF16, p.relu, false, true));
    return;
  }
  DataCopy(fb, l1, DataCopyParams(1, CeilDiv(p.n * 8, 128), 0, 0));
  PipeBarrier<PIPE_FIX>();
  SetFixPipeConfig(fb);
  DataCopy(global<half>(out), c,
           DataCopyCO12DstParams(p.n, p.m, p.stride, CeilDiv(p.m, 16) * 16, VDEQF16, p.relu, false, true));
}

// (A x B) as half through L1, x B again: L0C -> L1 -> L0A.
extern "C" __global__ __cube__ void twice(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR out, ProductCase p) {
  LocalTensor<float> c(TPosition::CO1, 0, 32768);
  LocalTensor<half> between(TPosition::A1, kHalfOfL1 + 4096, 16384);
  LocalTensor<half> a2(TPosition::A2, 0, 32768), b2(TPosition::B2, 0, 32768);
  Multiply<half>(c, a, b, bias, p);
  FixpipeParamsV220 params(p.n, p.m, CeilDiv(p.m, 16) * 16, CeilDiv(p.m, 16) * 16, false);
  params.quantPre = F322F16;
  Fixpipe<half, float, CFG_NZ>(between, c, params);
  Order<HardEvent::FIX_MTE1>();
  Order<HardEvent::M_MTE1>();
  AsTheyAre(a2, between, CeilDiv(p.m, 16), CeilDiv(p.n, 16));
  Order<HardEvent::MTE1_M>();
  Order<HardEvent::FIX_M>();
  MmadParams second(p.m, p.n, p.k, false, 0, false, false, false);
  Mmad(c, a2, b2, second);
  Order<HardEvent::M_FIX>();
  BringOut<float, float>(out, c, p);
}

// Two buffers of tiles brought in from global memory as they are, the products' sums split among blocks by atomics.
extern "C" __global__ __cube__ void split_k(GM_ADDR a, GM_ADDR b, GM_ADDR out) {
  LocalTensor<half> a2(TPosition::A2, 0, 256), b2(TPosition::B2, 0, 256);
  LocalTensor<float> c(TPosition::CO1, 0, 256);
  const auto tile = static_cast<uint16_t>(GetBlockIdx());
  LoadData(a2, global<half>(a), LoadData2DParams(tile, 1, 0, 0, 0, false, 0));
  LoadData(b2, global<half>(b), LoadData2DParams(tile, 1, 0, 0, 0, false, 0));
  Order<HardEvent::MTE2_M>();
  tile % 2 ? SetMMRowMajor() : SetMMColumnMajor();  // of one tile there is one order
  Mmad(c, a2, b2, MmadParams(16, 16, 16, false, 0, false, false, false));
  Order<HardEvent::M_FIX>();
  SetAtomicAdd<float>();
  Fixpipe(global<float>(out), c, FixpipeParamsV220(16, 16, 16, 16, false));
  SetAtomicNone();
}

// ---- two rounds of a 32 x 32 product, some synchronizations of which are left out: bit i of `left_out` is ----
// 1 MTE2_MTE1, 2 MTE1_M, 3 M_FIX, 4 MTE1_MTE2, 5 M_MTE1, 6 FIX_M, 7 PipeBarrier<PIPE_M>, 8 MTE2_FIX,
// 9 PipeBarrier<PIPE_FIX>, 10 FIX_MTE2, 11 PipeBarrier<PIPE_MTE2>, 12 PipeBarrier<PIPE_MTE1>
template <HardEvent event>
void Unless(bool left_out) {
  if (!left_out) Order<event>();
}

extern "C" __global__ __cube__ void chain(GM_ADDR a, GM_ADDR b, GM_ADDR words, GM_ADDR out, uint32_t left_out) {
  LocalTensor<int8_t> a1(TPosition::A1, 0, 1024), b1(TPosition::B1, 1024, 1024), a2(TPosition::A2, 0, 1024),
      b2(TPosition::B2, 0, 1024);
  LocalTensor<uint64_t> l1(TPosition::C1, 2048, 32), fb(TPosition::C2PIPE2GM, 0, 32);
  LocalTensor<int32_t> c(TPosition::CO1, 0, 1024);
  for (uint32_t round = 0; round < 2; round++) {
    Fill(a1.ReinterpretCast<half>(), InitConstValueParams<half>(1, 32, 0, half(0)));
    if (!(left_out >> 11 & 1)) PipeBarrier<PIPE_MTE2>();
    DataCopy(a1, global<int8_t>(a), Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0));
    DataCopy(b1, global<int8_t>(b), Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0));
    DataCopy(l1, global<uint64_t>(words), 32);
    Unless<HardEvent::MTE2_MTE1>(left_out >> 1 & 1);
    Unless<HardEvent::MTE2_FIX>(left_out >> 8 & 1);
    Fill(a2.ReinterpretCast<half>(), InitConstValueParams<half>(1, 2, 0, half(0)));
    if (!(left_out >> 12 & 1)) PipeBarrier<PIPE_MTE1>();
    LoadData(a2, a1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
    LoadData(b2, b1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
    Unless<HardEvent::MTE1_M>(left_out >> 2 & 1);
    Unless<HardEvent::MTE1_MTE2>(left_out >> 4 & 1);
    MmadParams params(32, 32, 32, false, 0, false, false, false);
    Mmad(c, a2, b2, params);
    if (!(left_out >> 7 & 1)) PipeBarrier<PIPE_M>();
    params.cmatrixInitVal = false;
    Mmad(c, a2, b2, params);
    Unless<HardEvent::M_FIX>(left_out >> 3 & 1);
    Unless<HardEvent::M_MTE1>(left_out >> 5 & 1);
    DataCopy(fb, l1, DataCopyParams(1, 2, 0, 0));
    if (!(left_out >> 9 & 1)) PipeBarrier<PIPE_FIX>();
    FixpipeParamsV220 fix(32, 32, 32, 32, false);
    fix.quantPre = VDEQF16;
    SetFixPipeConfig(fb);
    Fixpipe(global<half>(out)[round * 1024], c, fix);
    Unless<HardEvent::FIX_M>(left_out >> 6 & 1);
    Unless<HardEvent::FIX_MTE2>(left_out >> 10 & 1);
    PipeBarrier<PIPE_FIX>();
  }
}

// The same with queues, which make every order themselves.
extern "C" __global__ __cube__ void queues(GM_ADDR a, GM_ADDR b, GM_ADDR out) {
  TPipe pipe;
  TQue<TPosition::A1, 2> a1;
  TQue<TPosition::B1, 2> b1;
  TQue<TPosition::A2, 2> a2;
  TQue<TPosition::B2, 2> b2;
  TQue<TPosition::CO1, 2> co1;
  pipe.InitBuffer(a1, 2, 2048);
  pipe.InitBuffer(b1, 2, 2048);
  pipe.InitBuffer(a2, 2, 2048);
  pipe.InitBuffer(b2, 2, 2048);
  pipe.InitBuffer(co1, 2, 4096);
  for (uint32_t round = 0; round < 5; round++) {
    LocalTensor<half> in_a = a1.AllocTensor<half>(), in_b = b1.AllocTensor<half>();
    DataCopy(in_a, global<half>(a)[round * 1024], Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0));
    DataCopy(in_b, global<half>(b)[round * 1024], Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0));
    a1.EnQue(in_a);
    b1.EnQue(in_b);
    in_a = a1.DeQue<half>();
    in_b = b1.DeQue<half>();
    LocalTensor<half> l0a = a2.AllocTensor<half>(), l0b = b2.AllocTensor<half>();
    AsTheyAre(l0a, in_a, 2, 2);
    LoadData(l0b, in_b, LoadData2DParams(0, 4, 1, 0, 0, false, 0));
    a2.EnQue(l0a);
    b2.EnQue(l0b);
    a1.FreeTensor(in_a);
    b1.FreeTensor(in_b);
    l0a = a2.DeQue<half>();
    l0b = b2.DeQue<half>();
    LocalTensor<float> c = co1.AllocTensor<float>();
    Mmad(c, l0a, l0b, MmadParams(32, 32, 32, false, 0, false, false, false));
    co1.EnQue(c);
    a2.FreeTensor(l0a);
    b2.FreeTensor(l0b);
    c = co1.DeQue<float>();
    Fixpipe(global<float>(out)[round * 1024], c, FixpipeParamsV220(32, 32, 32, 32, false));
    co1.FreeTensor(c);
  }
}

// Handed over by unit flags: 1 the product doesn't raise them, 2 the copy out doesn't take them.
extern "C" __global__ __cube__ void unit_flags(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR out, uint32_t wrong,
                                               ProductCase p) {
  LocalTensor<float> c(TPosition::CO1, 0, 32768);
  LocalTensor<half> a2(TPosition::A2, 0, 32768), b2(TPosition::B2, 0, 32768);
  Multiply<half>(c, a, b, bias, p);
  PipeBarrier<PIPE_M>();
  for (uint32_t round = 0; round < 2; round++) {
    MmadParams params(p.m, p.n, p.k, 2, false, true);
    Mmad(c, a2, b2, params);
    PipeBarrier<PIPE_M>();
    params.cmatrixInitVal = false;
    params.unitFlag = wrong == 1 ? 2 : 3;
    Mmad(c, a2, b2, params);
    FixpipeParamsV220 fix(p.n, p.m, CeilDiv(p.m, 16) * 16, p.n, false);
    fix.unitFlag = wrong == 2 ? 2 : 3;
    Fixpipe(global<float>(out)[round * p.m * p.n], c, fix);
  }
}

// A product over the rows it was made of: unit flags order Fixpipe behind all that the product waited for. `left_out`:
// it doesn't wait for its operand.
extern "C" __global__ __cube__ void through_unit_flags(GM_ADDR out, uint32_t left_out) {
  LocalTensor<half> a1(TPosition::A1, 0, 1024), a2(TPosition::A2, 0, 1024), b2(TPosition::B2, 0, 1024);
  LocalTensor<float> c(TPosition::CO1, 0, 1024);
  Fill(b2, InitConstValueParams<half>(1, 4, 0, half(0)));
  DataCopy(a1, global<half>(out), 1024);
  Order<HardEvent::MTE2_MTE1>();
  LoadData(a2, a1, LoadData2DParams(0, 4, 1, 0, 0, false, 0));
  Unless<HardEvent::MTE1_M>(left_out != 0);
  Mmad(c, a2, b2, MmadParams(32, 32, 32, 3, false, true));
  FixpipeParamsV220 fix(32, 32, 32, 32, false);
  fix.unitFlag = 3;
  Fixpipe(global<float>(out), c, fix);
}

// ---- what no kernel may do ----
// 0 right, 1 behind L1, 2 behind a buffer, 3 L0A from a wrong byte, 4 a result in L1, 5 behind L0C, 6 a vector
// instruction, 7 more than there is of L0A, 8 a scalar load from L1, 9 DataCopyPad, 10 a product from L1, 11 its bias
extern "C" __global__ __cube__ void wrong(GM_ADDR a, GM_ADDR out, uint32_t what) {
  TPipe pipe;
  TBuf<TPosition::A1> buffer, other;
  TBuf<TPosition::A2> l0a;
  pipe.InitBuffer(buffer, 1024);
  pipe.InitBuffer(other, 1024);
  pipe.InitBuffer(l0a, what == 7 ? 65536 + 512 : 65536);
  TBuf<TPosition::A2> more;
  pipe.InitBuffer(more, 512);
  LocalTensor<half> l1 = buffer.Get<half>(), last(TPosition::A1, 2 * kHalfOfL1 - 512, 256), a2 = l0a.Get<half>(),
                    b2(TPosition::B2, 0, 256);
  LocalTensor<float> c(TPosition::CO1, 0, 256), end(TPosition::CO1, 131072, 256), in_l1(TPosition::A1, 65536, 256),
      bias(TPosition::C1, 65536, 256);
  DataCopy(what == 1 ? last : l1, global<half>(a), what == 1 || what == 2 ? 1024 : 512);
  if (what == 9) DataCopyPad(l1, global<half>(a), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<half>());
  Order<HardEvent::MTE2_MTE1>();
  LoadData(what == 3 ? a2[16] : what == 7 ? more.Get<half>() : a2, l1, LoadData2DParams(0, 1, 0, 0, 0, false, 0));
  LoadData(b2, l1, LoadData2DParams(0, 1, 0, 0, 0, false, 0));
  Order<HardEvent::MTE1_M>();
  LocalTensor<float> result = what == 4 ? in_l1 : what == 5 ? end : c;
  MmadParams params(16, 16, 16, 0, false, what != 11);
  if (what == 11)
    Mmad(result, a2, b2, bias, params);
  else
    Mmad(result, what == 10 ? l1 : a2, b2, params);
  if (what == 6) Adds(l1, l1, half(1), 16);
  if (what == 8) last.SetValue(0, l1.GetValue(0));
  Order<HardEvent::M_FIX>();
  Fixpipe(global<float>(out), c, FixpipeParamsV220(16, 16, 16, 16, false));
}

// Products, one behind another into blocks of L0C in turn, or each waited for.
extern "C" __global__ __cube__ void products(GM_ADDR out, uint32_t count, uint32_t alone, uint32_t m, uint32_t n,
                                             uint32_t k) {
  LocalTensor<half> a2(TPosition::A2, 0, 32768), b2(TPosition::B2, 0, 32768);
  LocalTensor<float> c(TPosition::CO1, 0, 32768);
  Fill(a2, InitConstValueParams<half>(1, 128, 0, half(1)));
  Fill(b2, InitConstValueParams<half>(1, 128, 0, half(1)));
  Order<HardEvent::MTE1_M>();
  for (uint32_t i = 0; i < count; i++) {
    Mmad(c, a2, b2, MmadParams(m, n, k, false, 0, false, false, false));
    if (alone) PipeBarrier<PIPE_ALL>();
  }
  Order<HardEvent::M_FIX>();
  Fixpipe(global<float>(out), c, FixpipeParamsV220(16, 16, 16, 16, false));
}

// A product of 128 x 256 x 64 handed to Fixpipe: 0 by a flag, 1 by unit flags, column of tiles by column, 2 row by row;
// 3, 4 as 2, in two products, in two calls of Fixpipe.
extern "C" __global__ __cube__ void handed_over(GM_ADDR out, uint32_t how) {
  LocalTensor<half> a2(TPosition::A2, 0, 32768), b2(TPosition::B2, 0, 32768);
  LocalTensor<float> c(TPosition::CO1, 0, 32768);
  Fill(a2, InitConstValueParams<half>(1, 128, 0, half(1)));
  Fill(b2, InitConstValueParams<half>(1, 128, 0, half(1)));
  Order<HardEvent::MTE1_M>();
  if (how > 1) SetMMRowMajor();
  MmadParams params(128, how == 3 ? 128 : 256, 64, how == 0 ? 0 : 3, false, true);
  Mmad(c, a2, b2, params);
  if (how == 3) Mmad(c[16384], a2, b2, params);
  if (how == 0) Order<HardEvent::M_FIX>();
  FixpipeParamsV220 fix(how == 4 ? 128 : 256, 128, 128, 256, false);
  fix.quantPre = F322F16;
  fix.unitFlag = params.unitFlag;
  Fixpipe(global<half>(out), c, fix);
  if (how == 4) Fixpipe(global<half>(out)[128], c[16384], fix);
}

// 64 x 64 to L0A and to L0B as windows of 1 x 1, one instruction each, waited for in pairs.
extern "C" __global__ __cube__ void loads(GM_ADDR src, uint32_t count) {
  LocalTensor<half> l1(TPosition::A1, 0, 32768), a2(TPosition::A2, 0, 32768), b2(TPosition::B2, 0, 32768);
  DataCopy(l1, global<half>(src), 32768);
  PipeBarrier<PIPE_ALL>();
  const uint8_t pad[4] = {0, 0, 0, 0};
  const LoadData3DParamsV2<half> windows(pad, 1, 64, 64, 64, 64, 0, 0, 1, 1, 1, 1, 1, 1, false, false, half(0));
  for (uint32_t i = 0; i < count; i++) {
    LoadData(a2, l1, windows);
    LoadData(b2, l1, windows);
    PipeBarrier<PIPE_ALL>();
  }
}

// Loads of 128 x 64 to L0A, a row of tiles each, and of 64 x 256 to L0B, waited for together.
extern "C" __global__ __cube__ void rows_of_tiles(GM_ADDR src, uint32_t count) {
  LocalTensor<half> l1(TPosition::A1, 0, 32768), a2(TPosition::A2, 0, 32768), b2(TPosition::B2, 0, 32768);
  DataCopy(l1, global<half>(src), 32768);
  PipeBarrier<PIPE_ALL>();
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t row = 0; row < 8; row++)
      LoadData(a2[row * 1024], l1[row * 256], LoadData2DParams(0, 4, 8, 0, 0, false, 0));
    for (uint32_t row = 0; row < 4; row++)
      LoadData(b2[row * 4096], l1[row * 256], LoadData2DParams(0, 16, 4, 0, 0, true, 0));
    PipeBarrier<PIPE_ALL>();
  }
}
