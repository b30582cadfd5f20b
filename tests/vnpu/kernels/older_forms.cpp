// Products whose tensors, copies and ways out are said as older kernels say them: memory by its position alone, copies
// with DataCopyEnhancedParams, Fixpipe with FixpipeParams.
#include "kernel_operator.h"
using namespace AscendC;

struct FormCase {
  uint32_t m, n, k, rows, relu, quant;
};

namespace {

template <typename T>
LocalTensor<T> memory(TPosition position, uint32_t offset, uint32_t elements) {
  LocalTensor<T> t;
  t.InitBuffer(offset, elements);
  t.address_.logicPos = static_cast<uint8_t>(position);
  return t;
}

// c = a b, with a and the columns of b as tiles of 16 rows of 32 bytes, one column of tiles after the other.
template <typename T, typename Sum, typename Out>
void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR words, const FormCase& p) {
  constexpr uint32_t c0 = 32 / sizeof(T);
  const uint32_t m1 = (p.m + 15) / 16, n1 = p.n / 16, k1 = p.k / c0;
  const uint32_t a_size = m1 * 16 * p.k, b_size = n1 * 16 * p.k;
  GlobalTensor<T> ga, gb;
  GlobalTensor<Out> gc;
  ga.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(a));
  gb.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(b));
  gc.SetGlobalBuffer(reinterpret_cast<__gm__ Out*>(c));
  auto all = memory<uint8_t>(TPosition::A1, 0, 512 * 1024);
  auto la = all.ReinterpretCast<T>();
  auto lb = memory<T>(TPosition::B1, 128 * 1024, b_size);
  auto lw = all[256 * 1024].ReinterpretCast<uint64_t>();
  DataCopyEnhancedParams as_matrix;
  as_matrix.blockMode = BlockMode::BLOCK_MODE_MATRIX;
  DataCopy(la, ga, DataCopyParams(1, a_size * sizeof(T) / 32, 0, 0), as_matrix);
  DataCopy(lb, gb, DataCopyParams(1, b_size * sizeof(T) / 32, 0, 0), as_matrix);
  if (p.quant == VDEQF16) {
    GlobalTensor<uint64_t> gw;
    gw.SetGlobalBuffer(reinterpret_cast<__gm__ uint64_t*>(words));
    DataCopy(lw, gw, DataCopyParams(1, p.n * 8 / 32, 0, 0));
  }
  SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
  SetFlag<HardEvent::MTE2_FIX>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_FIX>(EVENT_ID0);
  auto left = memory<T>(TPosition::A2, 0, a_size), right = memory<T>(TPosition::B2, 0, b_size);
  for (uint32_t i = 0; i < m1; i++) {
    LoadData2DParams tiles;
    tiles.repeatTimes = k1;
    tiles.srcStride = m1;
    LoadData(left[i * k1 * 16 * c0], la[i * 16 * c0], tiles);
  }
  LoadData2DParams tiles;
  tiles.repeatTimes = k1 * n1;
  tiles.srcStride = 1;
  LoadData(right, lb, tiles);
  SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
  WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
  auto sums = memory<Sum>(TPosition::CO1, 0, m1 * 16 * p.n);
  MmadParams product;
  product.m = p.m;
  product.n = p.n;
  product.k = p.k;
  product.cmatrixInitVal = true;
  Mmad(sums, left, right, product);
  SetFlag<HardEvent::M_FIX>(EVENT_ID0);
  WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
  FixpipeParams<Sum> way(n1, p.m * 16 * sizeof(Sum) / 32, 0, p.rows ? p.n : 0);
  way.reluEn = p.relu;
  way.quantParams = QuantParams(static_cast<QuantMode_t>(p.quant));
  if (p.rows) way.nz2ndParams = Nz2NdParams(true, 1, 0, 0, p.rows == 2 ? 0 : p.n);
  if (p.quant == VDEQF16)
    Fixpipe(gc, sums, lw, way);
  else
    Fixpipe(gc, sums, way);
}

}  // namespace

#define FORM(NAME, T, SUM, OUT)                                                                             \
  extern "C" __global__ __cube__ void NAME(GM_ADDR a, GM_ADDR b, GM_ADDR words, GM_ADDR c, FormCase p) {     \
    multiply<T, SUM, OUT>(a, b, c, words, p);                                                                \
  }
FORM(halves, half, float, float)
FORM(to_half, half, float, half)
FORM(brains, __bf16, float, __bf16)
FORM(bytes, int8_t, int32_t, half)

extern "C" __global__ __cube__ void no_way(GM_ADDR c, uint32_t to_l0c) {
  auto sums = memory<float>(TPosition::CO1, 0, 256);
  auto ub = memory<float>(to_l0c ? TPosition::CO1 : TPosition::CO2, 0, 256);
  auto l1 = memory<float>(TPosition::A1, 0, 256);
  DataCopy(ub, to_l0c ? l1 : sums, DataCopyParams(1, 1, 0, 0), DataCopyEnhancedParams());
}
