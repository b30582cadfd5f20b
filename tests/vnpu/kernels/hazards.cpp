// Twins: each kernel takes a set of fences as bits; with all of them it is race-free.
#include "kernel_operator.h"

using namespace AscendC;

namespace {
constexpr uint32_t kCount = 256;  // floats a tile: 1 KiB

struct Tiles {
  LocalTensor<float> a{TPosition::VECCALC, 0, kCount}, b{TPosition::VECCALC, 4096, kCount},
      c{TPosition::VECCALC, 8192, kCount};
};

GlobalTensor<float> global(GM_ADDR p, uint32_t offset = 0) {
  GlobalTensor<float> g;
  g.SetGlobalBuffer(reinterpret_cast<float*>(p) + offset);
  return g;
}

template <HardEvent event>
void fence(bool present, int32_t id) {
  if (!present) return;
  SetFlag<event>(id);
  WaitFlag<event>(id);
}
}  // namespace

// bit 0: load -> compute, bit 1: compute -> store, bit 2: compute -> next load (the buffer is used again),
// bit 3: store -> next compute.
extern "C" __global__ __aicore__ void pipeline(GM_ADDR x, GM_ADDR y, uint32_t fences) {
  Tiles t;
  for (uint32_t i = 0; i < 2; i++) {
    if (i) fence<HardEvent::V_MTE2>(fences & 4, 2);
    DataCopy(t.a, global(x, i * kCount), kCount);
    fence<HardEvent::MTE2_V>(fences & 1, 0);
    if (i) fence<HardEvent::MTE3_V>(fences & 8, 3);
    Add(t.c, t.a, t.a, kCount);
    fence<HardEvent::V_MTE3>(fences & 2, 1);
    DataCopy(global(y, i * kCount), t.c, kCount);
  }
}

// bit 0: PipeBarrier between two vector instructions of which the second reads what the first writes.
extern "C" __global__ __aicore__ void dependent(GM_ADDR x, GM_ADDR y, uint32_t fences) {
  Tiles t;
  DataCopy(t.a, global(x), kCount);
  fence<HardEvent::MTE2_V>(true, 0);
  Add(t.b, t.a, t.a, kCount);
  if (fences & 1) PipeBarrier<PIPE_V>();
  Add(t.c, t.b, t.a, kCount);
  fence<HardEvent::V_MTE3>(true, 0);
  DataCopy(global(y), t.c, kCount);
}

// bit 0: PipeBarrier between two loads to one place.
extern "C" __global__ __aicore__ void overwrite(GM_ADDR x, GM_ADDR y, uint32_t fences) {
  Tiles t;
  DataCopy(t.a, global(x), kCount);
  if (fences & 1) PipeBarrier<PIPE_MTE2>();
  DataCopy(t.a, global(x, kCount), kCount);
  fence<HardEvent::MTE2_MTE3>(true, 0);
  DataCopy(global(y), t.a, kCount);
}

// bit 0: load -> scalar read, bit 1: scalar write -> vector.
extern "C" __global__ __aicore__ void scalars(GM_ADDR x, GM_ADDR y, uint32_t fences) {
  Tiles t;
  DataCopy(t.a, global(x), kCount);
  fence<HardEvent::MTE2_S>(fences & 1, 0);
  float first = t.a.GetValue(0);
  fence<HardEvent::MTE2_V>(true, 0);
  fence<HardEvent::MTE2_S>(true, 1);
  t.a.SetValue(0, first + 1);
  fence<HardEvent::S_V>(fences & 2, 0);
  Add(t.c, t.a, t.a, kCount);
  fence<HardEvent::V_MTE3>(true, 0);
  DataCopy(global(y), t.c, kCount);
}

// Two or more cores write one place; bit 0: all but core 0 wait for it (and write after it).
extern "C" __global__ __aicore__ void shared(GM_ADDR x, GM_ADDR y, uint32_t fences) {
  Tiles t;
  DataCopy(t.a, global(x), kCount);
  fence<HardEvent::MTE2_MTE3>(true, 0);
  if (GetBlockIdx() == 0) DataCopy(global(y), t.a, kCount);
  if (fences & 1) SyncAll();
  if (GetBlockIdx() == 1) DataCopy(global(y), t.a, kCount);
}

// The queues' own handshakes: nothing else orders this loop.
extern "C" __global__ __aicore__ void queues(GM_ADDR x, GM_ADDR y, uint32_t tiles) {
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  TQue<TPosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, kCount * sizeof(float));
  pipe.InitBuffer(out, 2, kCount * sizeof(float));
  for (uint32_t i = 0; i < tiles; i++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, global(x, i * kCount), kCount);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Add(c, a, a, kCount);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(global(y, i * kCount), c, kCount);
    out.FreeTensor(c);
  }
}

// What silicon would break on: one kind of misuse by number.
extern "C" __global__ __aicore__ void misuse(GM_ADDR x, GM_ADDR y, uint32_t kind) {
  Tiles t;
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  pipe.InitBuffer(in, 1, kCount * sizeof(float));
  LocalTensor<float> a = in.AllocTensor<float>();
  switch (kind) {
    case 0:  // past the tensor
      return DataCopy(a, global(x, 2 * kCount - 16), 64);
    case 1:  // past the buffer
      return DataCopy(a, global(x), 2 * kCount);
    case 2:  // not aligned to 32 bytes
      return DataCopy(a[1], global(x), 8);
    case 3:  // no buffer left
      in.AllocTensor<float>();
      return;
    case 4:  // waits for a flag nobody sets
      return WaitFlag<HardEvent::MTE2_V>(0);
    case 5:  // not every core reaches the barrier
      if (GetBlockIdx() == 0) SyncAll();
      return;
    case 6:  // nothing was put into the queue
      in.DeQue<float>();
      return;
    case 7: {  // more than there is in the Unified Buffer
      TBuf<TPosition::VECCALC> big;
      pipe.InitBuffer(big, 200 * 1024);
      LocalTensor<float> b = big.Get<float>();
      return Add(b[49152], b, b, kCount);
    }
    case 8:  // freed twice
      in.FreeTensor(a);
      in.FreeTensor(a);
      return;
    case 9:  // no event id left
      for (int i = 0; i < 9; i++) pipe.AllocEventID<HardEvent::MTE2_V>();
      return;
    default:
      DataCopy(global(y), a, 0);
  }
}
