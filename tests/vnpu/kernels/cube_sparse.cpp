// c = a x b of int8, two in four elements of b along k being there: a as columns of tiles, b and its places as rows of
// tiles, brought in as they are.
#include "kernel_operator.h"

using namespace AscendC;

struct SparseCase {
  uint32_t m, n, k;
  uint32_t twice;   // the product is added to itself
  uint32_t places;  // whether places are loaded
  uint32_t start;   // tile of b and of its places that the load begins with
};

constexpr uint32_t kTile = 512;

template <HardEvent event>
__aicore__ inline void Order() {
  SetFlag<event>(EVENT_ID0);
  WaitFlag<event>(EVENT_ID0);
}

template <typename T>
__aicore__ inline GlobalTensor<T> global(GM_ADDR p) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p));
  return t;
}

extern "C" __global__ __cube__ void sparse(GM_ADDR a, GM_ADDR b, GM_ADDR places, GM_ADDR c, SparseCase p) {
  const uint32_t tall = (p.m + 15) / 16, wide = (p.n + 15) / 16, deep = (p.k + 31) / 32, half = (p.k / 2 + 31) / 32;
  const uint32_t ofA = tall * deep * kTile, ofB = (p.start + half * wide) * kTile;
  LocalTensor<int8_t> a1(TPosition::A1, 0, ofA), b1(TPosition::B1, 131072, ofB);
  LocalTensor<uint8_t> places1(TPosition::B1, 262144, ofB / 4);
  LocalTensor<int8_t> a2(TPosition::A2, 0, ofA), b2(TPosition::B2, kTile, half * wide * kTile);
  LocalTensor<int32_t> sums(TPosition::CO1, 0, tall * wide * 256);
  DataCopy(a1, global<int8_t>(a), ofA);
  DataCopy(b1, global<int8_t>(b), ofB);
  if (p.places) DataCopy(places1, global<uint8_t>(places), ofB / 4);
  Order<HardEvent::MTE2_MTE1>();
  for (uint32_t i = 0; i < tall; i++) {
    LoadData(a2[i * deep * kTile], a1[i * kTile], LoadData2DParams(0, deep, tall, 0, 0, false, 0));
  }
  LoadData2DParams load;
  load.startIndex = p.start;
  load.repeatTimes = half * wide;
  LoadDataWithSparse(b2, b1, places1, load);
  Order<HardEvent::MTE1_M>();
  MmadWithSparse(sums, a2, b2, MmadParams(p.m, p.n, p.k, false, 0, false, false, false));
  if (p.twice) {
    PipeBarrier<PIPE_M>();
    MmadWithSparse(sums, a2, b2, MmadParams(p.m, p.n, p.k, true, 0, false, false, false));
  }
  Order<HardEvent::M_FIX>();
  Fixpipe<int32_t, int32_t, CFG_ROW_MAJOR>(global<int32_t>(c), sums,
                                           FixpipeParamsV220(p.n, p.m, tall * 16, p.n, false));
}
