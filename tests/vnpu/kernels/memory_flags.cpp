// Flags between cores in global memory: IBSet and IBWait, WaitPreBlock and NotifyNextBlock, GroupBarrier,
// DataSyncBarrier.
#include "kernel_operator.h"

using namespace AscendC;

namespace {
constexpr uint32_t kCount = 256;  // floats a tile: 1 KiB
constexpr uint32_t kRoom = 8192;  // in local memory, of what the flags need

GlobalTensor<float> tile(GM_ADDR p, uint32_t index) {
  GlobalTensor<float> g;
  g.SetGlobalBuffer(reinterpret_cast<float*>(p) + index * kCount);
  return g;
}
GlobalTensor<int32_t> words(GM_ADDR p) {
  GlobalTensor<int32_t> g;
  g.SetGlobalBuffer(reinterpret_cast<int32_t*>(p));
  return g;
}
LocalTensor<int32_t> room() { return LocalTensor<int32_t>(TPosition::VECCALC, kRoom, 4096); }

// `a` is loaded from one tile, changed and stored to another.
void change(const LocalTensor<float>& a, const GlobalTensor<float>& from, const GlobalTensor<float>& to, float factor,
            float more, uint32_t loops) {
  DataCopy(a, from, kCount);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  for (uint32_t i = 0; i < loops; i++) {
    Muls(a, a, factor, kCount);
    PipeBarrier<PIPE_V>();
    Adds(a, a, more, kCount);
    PipeBarrier<PIPE_V>();
  }
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(to, a, kCount);
}
}  // namespace

// Every core but the first adds 1 to what the one before it has stored. bit 0: with flags; bit 1: raised before the
// store, not behind it; bit 2: awaited behind the load; bit 3: the first core raises none; bit 4: the order is that of
// falling numbers; bit 5: a flag nobody has is named; bit 6: the first core raises its flag twice, bit 7: and the
// second waits twice; bit 8: nobody waits.
extern "C" __global__ __aicore__ void chain(GM_ADDR x, GM_ADDR flags, uint32_t bits) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kCount);
  const int32_t n = GetBlockNum(), me = GetBlockIdx(), place = bits & 16 ? n - 1 - me : me;
  const int32_t before = bits & 16 ? me + 1 : me - 1, slot = bits & 32 ? n : before;
  GlobalTensor<int32_t> all = words(flags);
  const bool awaits = (bits & 1) && !(bits & 256) && place > 0,
             raises = (bits & 1) && !((bits & 8) && place == 0) && place < n - 1;
  if (awaits && !(bits & 4)) IBWait(all, room(), slot, 1);
  if (raises && (bits & 2)) IBSet(all, room(), me, 1);
  change(a, tile(x, place == 0 ? me : before), tile(x, me), 1.0f, 1.0f, 1);
  if (awaits && (bits & 4)) IBWait(all, room(), slot, 1);
  if (raises && !(bits & 2)) IBSet(all, room(), me, 1);
  if (raises && (bits & 64) && place == 0) IBSet(all, room(), me, 1);
  if (awaits && (bits & 128) && place == 1) IBWait(all, room(), slot, 1);
}

// `rounds` times every core in turn doubles a tile and adds its number. bit 0: in order; bit 1: the flags are set up;
// bit 2: a core notifies before it has stored; bit 3: the last core notifies nobody.
extern "C" __global__ __aicore__ void in_order(GM_ADDR x, GM_ADDR flags, uint32_t bits) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kCount);
  LocalTensor<int32_t> work = room();
  GlobalTensor<int32_t> all = words(flags);
  const uint32_t rounds = bits >> 8;
  if (bits & 2)
    InitDetermineComputeWorkspace(all, work);
  else
    work.SetValue(GetBlockNum() * 8, 1);
  for (uint32_t round = 0; round < rounds; round++) {
    const bool notifies = (bits & 1) && !((bits & 8) && GetBlockIdx() == GetBlockNum() - 1);
    if (bits & 1) WaitPreBlock(all, work);
    if (notifies && (bits & 4)) NotifyNextBlock(all, work);
    change(a, tile(x, 0), tile(x, 0), 2.0f, static_cast<float>(GetBlockIdx()), 1);
    if (notifies && !(bits & 4)) NotifyNextBlock(all, work);
    SetFlag<HardEvent::MTE3_MTE2>(0);
    WaitFlag<HardEvent::MTE3_MTE2>(0);
  }
}

// How long the second core waits: the first works `loops` times before it raises its flag.
extern "C" __global__ __aicore__ void late(GM_ADDR x, GM_ADDR flags, uint32_t loops) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kCount);
  GlobalTensor<int32_t> all = words(flags);
  if (GetBlockIdx() == 1) IBWait(all, room(), 0, 0);
  change(a, tile(x, GetBlockIdx()), tile(x, GetBlockIdx()), 1.0f, 1.0f, GetBlockIdx() == 0 ? loops : 1);
  if (GetBlockIdx() == 0) IBSet(all, room(), 0, 0);
}

// Stores of the scalar unit past its cache, `number` of them, each behind the one before; bit 31: with barriers.
extern "C" __global__ __aicore__ void stores(GM_ADDR x, GM_ADDR flags, uint32_t number) {
  auto* word = reinterpret_cast<int32_t*>(x);
  for (uint32_t i = 0; i < (number & 0xffff); i++) {
    WriteGmByPassDCache<int32_t>(word + i, static_cast<int32_t>(i));
    if (number >> 31) DataSyncBarrier<MemDsbT::DDR>();
  }
}

// The first cores arrive, round after round, and the others copy what one of them has stored in that round. A tile for
// each core and round. bit 0: with the barrier; bit 1: arrives before the store; bit 2: waits behind the copy; bit 3:
// core 0 doesn't arrive; bit 4: an index that the group doesn't have.
extern "C" __global__ __aicore__ void in_groups(GM_ADDR x, GM_ADDR flags, uint32_t rounds, uint32_t bits) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kCount);
  const uint32_t n = GetBlockNum(), arrive = n / 3 + 1, wait = n - arrive, me = GetBlockIdx();
  GroupBarrier<PipeMode::MTE3_MODE> barrier(flags, arrive, wait);
  if (barrier.GetWorkspaceLen() != (arrive > wait ? arrive : wait) * 512) return;
  for (uint32_t r = 0; r < rounds; r++) {
    GM_ADDR of_round = x + r * n * kCount * sizeof(float);
    GM_ADDR before = r == 0 ? of_round : of_round - n * kCount * sizeof(float);
    const bool arrives = (bits & 1) && !((bits & 8) && me == 0), early = bits & 2, late = bits & 4;
    if (me < arrive) {
      if (arrives && early) barrier.Arrive(me);
      change(a, tile(before, me), tile(of_round, me), 1.0f, 1.0f, 1);
      if (arrives && !early) barrier.Arrive(me + (bits & 16));
    } else {
      if ((bits & 1) && !late) barrier.Wait(me - arrive);
      change(a, tile(of_round, (me - arrive) % arrive), tile(of_round, me), 1.0f, 0.0f, 1);
      if ((bits & 1) && late) barrier.Wait(me - arrive);
    }
    PipeBarrier<PIPE_ALL>();
  }
}
