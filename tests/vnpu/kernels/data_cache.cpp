// What the data cache keeps to itself: between the scalar unit and copies of one core, and between cores.
#include "kernel_operator.h"
using namespace AscendC;

constexpr uint32_t kLine = 16, kBlock = 8;  // floats

__aicore__ inline GlobalTensor<float> global(GM_ADDR p, uint32_t element = 0) {
  GlobalTensor<float> t;
  t.SetGlobalBuffer((__gm__ float*)p + element);
  return t;
}

template <HardEvent event>
__aicore__ inline void fence() {
  SetFlag<event>(EVENT_ID0);
  WaitFlag<event>(EVENT_ID0);
}

// how: 0 not at all, 1 the line, 2 all lines, 3 another line.
__aicore__ inline void clean(GM_ADDR y, uint32_t how) {
  if (how == 1) DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(global(y, 3));
  if (how == 2) DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(global(y, 999));
  if (how == 3) DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(global(y, kLine));
}

// The scalar unit and a copy, with their flags: what they do to a line of y, and how the cache is cleaned in between.
extern "C" __global__ __aicore__ void alone(GM_ADDR x, GM_ADDR y, uint32_t what, uint32_t how) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kBlock);
  DataCopy(a, global(x), kBlock);
  fence<HardEvent::MTE2_MTE3>();
  fence<HardEvent::MTE2_S>();
  auto out = global(y);
  switch (what) {
    case 0:  // stored, then loaded by a copy
      out.SetValue(0, 1.0f);
      clean(y, how);
      fence<HardEvent::S_MTE2>();
      return DataCopy(a, out, kBlock);
    case 1:  // stored, then a copy to another block of the line
      out.SetValue(0, 1.0f);
      clean(y, how);
      fence<HardEvent::S_MTE3>();
      return DataCopy(out[kBlock], a, kBlock);
    case 2:  // loaded, then again after a copy
      out.GetValue(0);
      DataCopy(out, a, kBlock);
      fence<HardEvent::MTE3_S>();
      clean(y, how);
      out.GetValue(0);
      return;
    case 3:  // loaded, then stored to after a copy to another block of the line
      out.GetValue(0);
      DataCopy(out[kBlock], a, kBlock);
      fence<HardEvent::MTE3_S>();
      clean(y, how);
      return out.SetValue(0, 1.0f);
    case 4:  // stored, then copies of what is beside
      out.SetValue(0, 1.0f);
      fence<HardEvent::S_MTE2>();
      DataCopy(a, out[kBlock], kBlock);
      fence<HardEvent::MTE2_MTE3>();
      return DataCopy(out[kLine], a, kBlock);
    case 5:  // past the cache
      WriteGmByPassDCache((__gm__ int32_t*)y, 1);
      fence<HardEvent::S_MTE2>();
      return DataCopy(a, out, kBlock);
  }
}

// Core 0 stores, core 1 loads, by the scalar unit or by a copy (bit 2). bit 0: core 0 cleans its cache; bit 1: they
// meet.
extern "C" __global__ __aicore__ void handed_on(GM_ADDR x, GM_ADDR y, uint32_t bits, uint32_t) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kBlock);
  if (GetBlockIdx() == 0) {
    global(y).SetValue(0, 1.0f);
    clean(y, bits & 1);
  }
  if (bits & 2) SyncAll();
  if (GetBlockIdx() != 1) return;
  if (bits & 4)
    DataCopy(a, global(y), kBlock);
  else
    global(y).GetValue(0);
}

// Every core stores to its own element, `stride` apart. how: as above, then they meet.
extern "C" __global__ __aicore__ void neighbours(GM_ADDR x, GM_ADDR y, uint32_t stride, uint32_t how) {
  global(y).SetValue(GetBlockIdx() * stride, 1.0f);
  clean(y, how);
}

// Core 1 loads, core 0 copies there, core 1 loads again: how it cleans its cache before, and whether it has loaded.
extern "C" __global__ __aicore__ void kept(GM_ADDR x, GM_ADDR y, uint32_t how, uint32_t before) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kBlock);
  if (before && GetBlockIdx() == 1) global(y).GetValue(2);
  SyncAll();
  if (GetBlockIdx() == 0) {
    DataCopy(a, global(x), kBlock);
    fence<HardEvent::MTE2_MTE3>();
    DataCopy(global(y), a, kBlock);
  }
  SyncAll();
  if (GetBlockIdx() != 1) return;
  clean(y, how);
  global(y).GetValue(0);
}

// Every core does this to one element through a reference; core 1 stores an element of its own, `stride` further on.
extern "C" __global__ __aicore__ void referred(GM_ADDR x, GM_ADDR y, uint32_t what, uint32_t stride) {
  GlobalTensor<float> in = global(x), out = global(y);
  float sum = 0;
  switch (what) {
    case 0:  // loads it
      sum = in(0) + in(1);
      break;
    case 1:  // stores it
      in(0) = 1.0f;
      break;
    case 2:  // both
      in(0) += 2.0f;
      break;
    case 3: {  // loads it late, through a reference that is kept
      const float& kept = in(3);
      SyncAll();
      sum = kept;
      break;
    }
  }
  if (GetBlockIdx() == 1) out(stride) = sum + 5.0f;
}

// The same in local memory: of what a vector instruction reads (a) and writes (b).
extern "C" __global__ __aicore__ void referred_locally(GM_ADDR x, GM_ADDR y, uint32_t what, uint32_t fenced) {
  LocalTensor<float> a(TPosition::VECCALC, 0, kLine), b(TPosition::VECCALC, 64, kLine);
  DataCopy(a, global(x), kLine);
  fence<HardEvent::MTE2_V>();
  fence<HardEvent::MTE2_S>();
  Adds(b, a, 1.0f, kLine);
  if (fenced) fence<HardEvent::V_S>();
  if (what == 0) global(y)(1) = a(2);
  if (what == 1) global(y)(1) = b(2);
  if (what == 2) a(2) = 7.0f;
}
