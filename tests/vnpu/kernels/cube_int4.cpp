// Products of int4b_t for test_cube_int4.py: two elements a byte, the first in the low half.
#include "kernel_operator.h"

using namespace AscendC;

struct Int4Case {
  uint32_t m, n, k;
  uint32_t aWindows, bColumns, start;  // A by LoadData 3D; B lies as [n, k]; start: 0 zero, 1 twice, 2 the bias
  uint32_t kShort;                     // rows of B that are left out
};

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

// Rows of a matrix: bytes are what is counted along a row.
void BringIn(LocalTensor<int4b_t> l1, GM_ADDR src, uint32_t rows, uint32_t columns, uint32_t tall) {
  DataCopy(l1, global<int4b_t>(src), Nd2NzParams(1, rows, columns / 2, 0, columns / 2, tall, 1, 0));
}

extern "C" __global__ __cube__ void int4(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR out, Int4Case p) {
  constexpr uint32_t kTile = 1024;  // elements
  const uint32_t m1 = CeilDiv(p.m, 16), n1 = CeilDiv(p.n, 16), k1 = CeilDiv(p.k, 64), n64 = CeilDiv(p.n, 64);
  LocalTensor<int4b_t> a1(TPosition::A1, 0, 262144), b1(TPosition::B1, 131072, 262144);
  LocalTensor<int4b_t> a2(TPosition::A2, 0, 131072), b2(TPosition::B2, 0, 131072);
  LocalTensor<int32_t> c1(TPosition::C1, 262144, 256), bt(TPosition::C2, 0, 256), c(TPosition::CO1, 0, 32768);
  BringIn(a1, a, p.m, p.k, p.m == 1 ? 1 : m1 * 16);  // one row is a vector
  p.bColumns ? BringIn(b1, b, p.n, p.k, n1 * 16) : BringIn(b1, b, p.k - p.kShort, p.n, k1 * 64);
  DataCopy(c1, global<int32_t>(bias), Nd2NzParams(1, 1, p.n, 0, p.n, 1, 1, 0));
  Order<HardEvent::MTE2_MTE1>();
  if (p.aWindows) {
    LoadData3DParamsV2<int4b_t> w;
    w.l1H = 1;
    w.l1W = w.mExtension = m1 * 16;
    w.channelSize = w.kExtension = k1 * 64;
    LoadData(a2, a1, w);
  } else if (p.m == 1) {
    LoadData(a2, a1, LoadData2DParams(0, CeilDiv(k1, 16), 1, 0, 0, false, 0));
  } else {
    for (uint32_t i = 0; i < m1; i++)
      LoadData(a2[i * k1 * kTile], a1[i * kTile], LoadData2DParams(0, k1, m1, 0, 0, false, 0));
  }
  if (p.bColumns) {
    LoadData(b2, b1, LoadData2DParams(0, n1 * k1, 1, 0, 0, false, 0));
  } else {
    for (uint32_t i = 0; i < k1; i++)  // squares of 64 x 64: four columns of B's tiles at once
      LoadDataWithTranspose(b2[i * n64 * 4 * kTile], b1[i * 4 * kTile], LoadData2dTransposeParams(0, n64, k1, 3, 0));
  }
  DataCopy(bt, c1, DataCopyParams(1, CeilDiv(p.n * 4, 64), 0, 0));
  Order<HardEvent::MTE1_M>();
  MmadParams params;
  params.m = p.m;
  params.n = p.bColumns ? p.n : n64 * 64;
  params.k = p.k;
  params.cmatrixInitVal = p.start != 2;
  params.cmatrixSource = p.start == 2;
  Mmad(c, a2, b2, params);
  if (p.start == 1) {
    PipeBarrier<PIPE_M>();
    params.cmatrixInitVal = false;
    Mmad(c, a2, b2, params);
  }
  Order<HardEvent::M_FIX>();
  Fixpipe(global<int32_t>(out), c, FixpipeParamsV220(p.n, p.m, m1 * 16, p.n, false));
}

// What a square becomes whose tiles are spread out: `gap` tiles between them.
extern "C" __global__ __cube__ void spread(GM_ADDR eye, GM_ADDR b, GM_ADDR out, uint32_t gap) {
  LocalTensor<int4b_t> a1(TPosition::A1, 0, 4096), b1(TPosition::B1, 131072, 4096);
  LocalTensor<int4b_t> a2(TPosition::A2, 0, 4096), b2(TPosition::B2, 0, 131072);
  LocalTensor<int32_t> c(TPosition::CO1, 0, 4096);
  BringIn(a1, eye, 64, 64, 64);
  BringIn(b1, b, 64, 64, 64);
  Order<HardEvent::MTE2_MTE1>();
  LoadData(a2, a1, LoadData2DParams(0, 4, 1, 0, 0, false, 0));
  LoadDataWithTranspose(b2, b1, LoadData2dTransposeParams(0, 1, 1, 0, static_cast<uint16_t>(gap)));
  Order<HardEvent::MTE1_M>();
  MmadParams params;
  params.m = 64;
  params.n = 16;
  params.k = 64;
  for (uint32_t i = 0; i < 4; i++) Mmad(c[i * 1024], a2, b2[i * (gap + 1) * 1024], params);
  Order<HardEvent::M_FIX>();
  Fixpipe(global<int32_t>(out), c, FixpipeParamsV220(64, 64, 64, 64, false));
}

// `count` products of 64 tiles each, timed.
extern "C" __global__ __cube__ void paced(GM_ADDR out, uint32_t count) {
  LocalTensor<half> a(TPosition::A2, 0, 32768), b(TPosition::B2, 0, 32768);
  LocalTensor<int4b_t> a2(TPosition::A2, 0, 131072), b2(TPosition::B2, 0, 131072);
  LocalTensor<int32_t> c(TPosition::CO1, 0, 32768);
  Fill(a, InitConstValueParams<half>(1, 128, 0, half(1)));
  Fill(b, InitConstValueParams<half>(1, 128, 0, half(1)));
  Order<HardEvent::MTE1_M>();
  for (uint32_t i = 0; i < count; i++) Mmad(c, a2, b2, MmadParams(64, 64, 256, false, 0, false, false, false));
  Order<HardEvent::M_FIX>();
  Fixpipe(global<int32_t>(out), c, FixpipeParamsV220(16, 16, 16, 16, false));
}

// Refused when they are called.
extern "C" __global__ __cube__ void refused(GM_ADDR out, uint32_t which) {
  LocalTensor<int4b_t> l1(TPosition::A1, 0, 4096), a2(TPosition::A2, 0, 4096), b2(TPosition::B2, 0, 4096);
  LocalTensor<int32_t> c(TPosition::CO1, 0, 4096);
  MmadParams params;
  params.m = params.n = 16;
  params.k = 63;
  LoadData3DParamsV2<int4b_t> w;
  w.l1H = 1;
  w.l1W = w.mExtension = 16;
  w.channelSize = w.kExtension = which == 3 ? 32 : 64;
  w.kStartPt = which == 4 ? 32 : 0;
  if (which == 0) Mmad(c, a2, b2, params);
  if (which == 1) LoadDataWithTranspose(a2, l1, LoadData2dTransposeParams(0, 1, 1, 0, 0));
  if (which == 2) LoadData(b2, l1, w);
  if (which >= 3 && which <= 4) LoadData(a2, l1, w);
  if (which == 5) LoadData(a2[1], l1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
  if (which == 6) LoadData(a2[4096], l1, LoadData2DParams(0, 255, 1, 0, 0, false, 0));
}
