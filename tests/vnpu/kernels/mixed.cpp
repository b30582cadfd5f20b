// Kernels on cube and vector cores together, for test_mixed.py: cores that say who they are, a matmul between two steps of
// its group's vector cores with flags both ways, meetings, and what groups must not do.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kSide = 32, kTile = kSide * kSide;  // of every matrix: rows and columns; elements
constexpr uint32_t kSlots = 2;                         // of a group's workspace

template <typename T>
GlobalTensor<T> global(GM_ADDR p, uint64_t at = 0) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p) + at);
  return t;
}

template <HardEvent event>
void Order() {
  SetFlag<event>(EVENT_ID0);
  WaitFlag<event>(EVENT_ID0);
}

// ---- who am I: eight numbers of each core, in a line of its own; the cube cores' first ----
void Who(GM_ADDR out) {
  const uint32_t cubes = GetBlockNum();
  uint32_t row = GetBlockIdx();
  if ASCEND_IS_AIV row += cubes;
  auto line = global<int32_t>(out, row * 16);
  int32_t says[8] = {g_coreType == AIC ? 1 : 2,
                     static_cast<int32_t>(GetBlockIdx()),
                     static_cast<int32_t>(GetBlockNum()),
                     static_cast<int32_t>(GetSubBlockIdx()),
                     static_cast<int32_t>(GetSubBlockNum()),
                     static_cast<int32_t>(GetTaskRatio()),
                     static_cast<int32_t>(get_block_idx()),
                     static_cast<int32_t>(get_subblockid())};
  for (uint32_t i = 0; i < 8; i++) line.SetValue(i, says[i]);
  DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE>(line);
}
extern "C" __global__ __mix__(1, 1) void who_1_1(GM_ADDR out) { Who(out); }
extern "C" __global__ __mix__(1, 2) void who_1_2(GM_ADDR out) { Who(out); }
extern "C" __global__ __cube__ void who_cube(GM_ADDR out) { Who(out); }
extern "C" __global__ __vector__ void who_vector(GM_ADDR out) { Who(out); }

// ---- y = leaky_relu((a + 1) x b), round by round ----
enum Wrong : uint32_t {
  kNoReady = 1,    // the cube core doesn't wait for a + 1
  kEarly = 2,      // the vector cores say that it is there before they store it
  kNoDone = 4,     // they don't wait for the product
  kOtherPipe = 8,  // the cube core says that it is there when its copies in are done
  kLate = 16,      // they wait when they have read it
};

struct Places {
  GM_ADDR a;
  GM_ADDR b;
  GM_ADDR y;
  GM_ADDR workspace;
  uint32_t rounds, wrong;
};

constexpr uint32_t kSum = 0, kProduct = 1;  // flags: a + 1 is there; its product is

// A group's workspace: kSlots tiles of half, then as many of float.
uint64_t SumAt(uint32_t slot) { return static_cast<uint64_t>(get_block_idx()) * kSlots * kTile * 3 + slot * kTile; }
uint64_t ProductAt(uint32_t slot) { return SumAt(0) / 2 + kSlots * kTile / 2 + slot * kTile; }

void OnCube(const Places& p) {
  LocalTensor<half> a1(TPosition::A1, 0, kTile), b1(TPosition::B1, 65536, kTile);
  LocalTensor<half> a2(TPosition::A2, 0, kTile), b2(TPosition::B2, 0, kTile);
  LocalTensor<float> c(TPosition::CO1, 0, kTile);
  const Nd2NzParams rows(1, kSide, kSide, 0, kSide, kSide, 1, 0);
  DataCopy(b1, global<half>(p.b), rows);
  Order<HardEvent::MTE2_MTE1>();
  for (uint32_t i = 0; i < 2; i++)
    LoadData(b2[i * kTile / 2], b1[i * 256], LoadData2DParams(0, 2, 2, 0, 0, true, 0));
  MmadParams product;
  product.m = product.n = product.k = kSide;
  for (uint32_t round = 0; round < p.rounds; round++) {
    const uint32_t slot = round % kSlots;
    if (!(p.wrong & kNoReady)) CrossCoreWaitFlag(kSum);
    DataCopy(a1, global<half>(p.workspace, SumAt(slot)), rows);
    if (p.wrong & kOtherPipe) CrossCoreSetFlag<2, PIPE_MTE2>(kProduct);
    Order<HardEvent::MTE2_MTE1>();
    for (uint32_t i = 0; i < 2; i++)
      LoadData(a2[i * kTile / 2], a1[i * 256], LoadData2DParams(0, 2, 2, 0, 0, false, 0));
    Order<HardEvent::MTE1_M>();
    Mmad(c, a2, b2, product);
    Order<HardEvent::M_FIX>();
    Fixpipe(global<float>(p.workspace, ProductAt(slot)), c, FixpipeParamsV220(kSide, kSide, kSide, kSide, false));
    if (!(p.wrong & (kOtherPipe | kNoDone))) CrossCoreSetFlag<2, PIPE_FIX>(kProduct);
    Order<HardEvent::FIX_MTE2>();
    Order<HardEvent::FIX_M>();
  }
  if (p.wrong & kNoReady)
    for (uint32_t round = 0; round < p.rounds; round++) CrossCoreWaitFlag(kSum);
}

void OnVector(const Places& p) {
  const uint32_t mine = kTile / GetSubBlockNum(), from = mine * GetSubBlockIdx();
  LocalTensor<half> a(TPosition::VECIN, 0, mine), sum(TPosition::VECOUT, 8192, mine);
  LocalTensor<float> c(TPosition::VECIN, 16384, mine), y(TPosition::VECOUT, 32768, mine);
  for (uint32_t round = 0; round < p.rounds; round++) {
    const uint32_t slot = round % kSlots;
    const uint64_t at = (static_cast<uint64_t>(get_block_idx()) * p.rounds + round) * kTile + from;
    DataCopy(a, global<half>(p.a, at), mine);
    Order<HardEvent::MTE2_V>();
    Adds(sum, a, half(1), mine);
    Order<HardEvent::V_MTE3>();
    if (p.wrong & kEarly) CrossCoreSetFlag<2, PIPE_MTE3>(kSum);
    DataCopy(global<half>(p.workspace, SumAt(slot) + from), sum, mine);
    if (!(p.wrong & kEarly)) CrossCoreSetFlag<2, PIPE_MTE3>(kSum);
    if (!(p.wrong & (kNoDone | kLate))) CrossCoreWaitFlag(kProduct);
    DataCopy(c, global<float>(p.workspace, ProductAt(slot) + from), mine);
    if (p.wrong & kLate) CrossCoreWaitFlag(kProduct);
    Order<HardEvent::MTE2_V>();
    LeakyRelu(y, c, 0.5f, mine);
    Order<HardEvent::V_MTE3>();
    DataCopy(global<float>(p.y, at), y, mine);
    Order<HardEvent::MTE3_V>();
    Order<HardEvent::V_MTE2>();
  }
}

void Leaky(const Places& p) {
  if ASCEND_IS_AIC OnCube(p);
  if ASCEND_IS_AIV OnVector(p);
}
extern "C" __global__ __mix__(1, 1) void leaky_1_1(GM_ADDR a, GM_ADDR b, GM_ADDR y, GM_ADDR ws, uint32_t n, uint32_t w) {
  Leaky({a, b, y, ws, n, w});
}
extern "C" __global__ __mix__(1, 2) void leaky_1_2(GM_ADDR a, GM_ADDR b, GM_ADDR y, GM_ADDR ws, uint32_t n, uint32_t w) {
  Leaky({a, b, y, ws, n, w});
}

// ---- cores that meet: each vector core stores a tile, a cube core of another group brings it to L1 and out again ----
extern "C" __global__ __mix__(1, 2) void meet(GM_ADDR x, GM_ADDR shared, GM_ADDR y, uint32_t how) {
  constexpr uint32_t n = 256;
  if ASCEND_IS_AIV {
    LocalTensor<float> t(TPosition::VECCALC, 0, n);
    DataCopy(t, global<float>(x, GetBlockIdx() * n), n);
    Order<HardEvent::MTE2_V>();
    Adds(t, t, 1.0f, n);
    Order<HardEvent::V_MTE3>();
    DataCopy(global<float>(shared, GetBlockIdx() * n), t, n);
  }
  if (how == 1) SyncAll<false>();
  if (how == 2) SyncAll();  // those of one kind
  if (how == 3) {           // the same in flags
    if ASCEND_IS_AIV {
      CrossCoreSetFlag<2, PIPE_MTE3>(4);
      CrossCoreWaitFlag(6);
    } else {
      CrossCoreWaitFlag(4);
      CrossCoreSetFlag<0, PIPE_FIX>(5);
      CrossCoreWaitFlag(5);
      CrossCoreSetFlag<2, PIPE_FIX>(6);
    }
  }
  if ASCEND_IS_AIC {
    LocalTensor<float> t(TPosition::A1, 0, 2 * n);
    const uint32_t other = (GetBlockIdx() + 1) % GetBlockNum();
    DataCopy(t, global<float>(shared, other * 2 * n), 2 * n);
    Order<HardEvent::MTE2_MTE3>();
    DataCopy(global<float>(y, other * 2 * n), t, 2 * n);
  }
}

// ---- vector cores of a group hand each other what they have: mode 1 ----
extern "C" __global__ __mix__(1, 2) void swap(GM_ADDR x, GM_ADDR shared, GM_ADDR y, uint32_t flag) {
  constexpr uint32_t n = 256;
  if ASCEND_IS_AIC return;
  LocalTensor<float> t(TPosition::VECCALC, 0, n);
  DataCopy(t, global<float>(x, GetBlockIdx() * n), n);
  Order<HardEvent::MTE2_MTE3>();
  DataCopy(global<float>(shared, GetBlockIdx() * n), t, n);
  if (flag) {
    CrossCoreSetFlag<1, PIPE_MTE3>(3);
    CrossCoreWaitFlag(3);
  }
  Order<HardEvent::MTE3_MTE2>();
  DataCopy(t, global<float>(shared, (GetBlockIdx() ^ 1) * n), n);
  Order<HardEvent::MTE2_MTE3>();
  DataCopy(global<float>(y, GetBlockIdx() * n), t, n);
}

// ---- what groups must not do ----
extern "C" __global__ __mix__(1, 2) void wrong(GM_ADDR x, uint32_t what) {
  LocalTensor<float> ub(TPosition::VECCALC, 0, 64);
  LocalTensor<float> l0c(TPosition::CO1, 0, 64);
  if ASCEND_IS_AIC {
    if (what == 1) CrossCoreWaitFlag(2);                        // nobody raises it
    if (what == 2) CrossCoreWaitFlag(2);                        // one of the two does
    if (what == 3)                                              // nobody waits
      for (uint32_t i = 0; i < 16; i++) CrossCoreSetFlag<2, PIPE_FIX>(7);
    if (what == 4) CrossCoreSetFlag<1, PIPE_FIX>(0);            // of vector cores
    if (what == 5) Adds(ub, ub, 1.0f, 64);
    if (what == 6) SyncAll<false>();                            // the others don't
  } else {
    if (what == 2 && GetSubBlockIdx() == 1) CrossCoreSetFlag<2, PIPE_MTE3>(2);
    if (what == 7) Fixpipe(global<float>(x), l0c, FixpipeParamsV220(16, 4, 16, 16, false));
  }
}
extern "C" __global__ __vector__ void alone(GM_ADDR x) {
  CrossCoreSetFlag<2, PIPE_MTE3>(0);  // of a group, which it has none of
}

// ---- any program of copies and flags: four numbers a step, so many steps for each core, group by group ----
enum Step : int32_t { kRead, kWrite, kSet, kWait };

template <uint8_t mode>
void Raise(int32_t out, int32_t id) {
  out ? CrossCoreSetFlag<mode, PIPE_MTE3>(id) : CrossCoreSetFlag<mode, PIPE_MTE2>(id);
}

extern "C" __global__ __mix__(1, 2) void play(GM_ADDR program, GM_ADDR places, uint32_t steps) {
  const int64_t core = get_block_idx() * 3 + (g_coreType == AIC ? 0 : 1 + GetSubBlockIdx());
  auto mine = global<int32_t>(program, core * steps * 4);
  const TPosition position = g_coreType == AIC ? TPosition::A1 : TPosition::VECCALC;
  for (uint32_t i = 0; i < steps; i++) {
    const int32_t what = mine.GetValue(4 * i), place = mine.GetValue(4 * i + 1), id = mine.GetValue(4 * i + 2);
    LocalTensor<int32_t> local(position, what == kRead ? 0 : 1024, 8);
    auto there = global<int32_t>(places, place * 8);
    if (what == kRead) DataCopy(local, there, 8);
    if (what == kWrite) DataCopy(there, local, 8);
    if (what == kSet) {
      const int32_t out = mine.GetValue(4 * i + 3);
      place == 0 ? Raise<0>(out, id) : place == 1 ? Raise<1>(out, id) : Raise<2>(out, id);
    }
    if (what == kWait) CrossCoreWaitFlag(id);
  }
}
