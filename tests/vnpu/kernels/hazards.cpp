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

// Every core clears all tiles, then fills its own. bit 0: they meet in between; bit 1: cores clear with different
// values; bit 2: core 0 loads a tile before they meet.
extern "C" __global__ __aicore__ void cleared(GM_ADDR x, GM_ADDR y, uint32_t bits) {
  Tiles t;
  DataCopy(t.a, global(x), kCount);
  Duplicate(t.c, bits & 2 ? float(GetBlockIdx()) : 0.0f, kCount);
  fence<HardEvent::V_MTE3>(true, 0);
  for (uint32_t i = 0; i < GetBlockNum(); i++) DataCopy(global(y, i * kCount), t.c, kCount);
  fence<HardEvent::MTE3_MTE2>(true, 0);
  if ((bits & 4) && GetBlockIdx() == 0) DataCopy(t.b, global(y), kCount);
  if (bits & 1) SyncAll();
  PipeBarrier<PIPE_ALL>();
  DataCopy(global(y, GetBlockIdx() * kCount), t.a, kCount);
}

// Core 0 clears a tile, all cores add to it and to the next one. bit 0: they meet in between.
extern "C" __global__ __aicore__ void added(GM_ADDR x, GM_ADDR y, uint32_t bits) {
  LocalTensor<float> sum(TPosition::VECCALC, 0, 2 * kCount);
  Duplicate(sum, 0.0f, 2 * kCount);
  fence<HardEvent::V_MTE3>(true, 0);
  if (GetBlockIdx() == 0) DataCopy(global(y), sum, kCount);
  PipeBarrier<PIPE_ALL>();
  if (bits & 1) SyncAll();
  SetAtomicAdd<float>();
  DataCopy(global(y), sum, 2 * kCount);
  SetAtomicNone();
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

// Elements of one block. bits 0..7: n, what the vector unit reads; bits 8..15: j, what the scalar unit writes without a
// fence, before (bit 16 clear) or after it.
extern "C" __global__ __aicore__ void neighbours(GM_ADDR x, GM_ADDR y, uint32_t p) {
  Tiles t;
  uint32_t n = p & 255, j = p >> 8 & 255;
  bool after = p >> 16 & 1;
  Duplicate(t.a, 1.0f, 8);
  fence<HardEvent::V_S>(true, 0);
  t.a.SetValue(7 - j, 2.0f);
  fence<HardEvent::S_V>(true, 0);
  if (!after) t.a.SetValue(j, 3.0f);
  Adds(t.c, t.a, 0.0f, n);
  if (after) t.a.SetValue(j, 3.0f);
  fence<HardEvent::V_MTE3>(true, 0);
  DataCopy(global(y), t.c, 8);
}

// bit 0: the scalar unit waits for the vector unit before it takes a result from a register.
extern "C" __global__ __aicore__ void registers(GM_ADDR x, GM_ADDR y, uint32_t fences) {
  Tiles t;
  DataCopy(t.a, global(x), kCount);
  fence<HardEvent::MTE2_V>(true, 0);
  WholeReduceMax(t.c, t.a, 64, 4, 1, 1, 8);
  fence<HardEvent::V_S>(fences & 1, 0);
  float value = 0, index = 0;
  GetReduceMaxMinCount(value, index);
  fence<HardEvent::V_MTE3>(true, 0);
  DataCopy(global(y), t.c, 8);
}

// One core writes global memory and reads it again. bit 0: store -> load; bit 1: a PipeBarrier between two stores of
// which the second (bit 2: atomically) goes to the same place.
extern "C" __global__ __aicore__ void through_global(GM_ADDR x, GM_ADDR y, uint32_t p) {
  Tiles t;
  DataCopy(t.a, global(x), kCount);
  fence<HardEvent::MTE2_MTE3>(true, 0);
  DataCopy(global(y), t.a, kCount);
  if (p & 2) PipeBarrier<PIPE_MTE3>();
  if (p & 4) SetAtomicAdd<float>();
  DataCopy(global(y), t.a, kCount);
  if (p & 4) SetAtomicNone();
  fence<HardEvent::MTE3_MTE2>(p & 1, 0);
  DataCopy(t.b, global(y), kCount);
}

// Elements, in eighths: loaded (bits 0..7), computed (8..15), stored (16..23); bit 24: stored once more, all of them
// loaded then.
extern "C" __global__ __aicore__ void unwritten(GM_ADDR x, GM_ADDR y, uint32_t p) {
  Tiles t;
  uint32_t loaded = (p & 255) * 8, computed = (p >> 8 & 255) * 8, stored = (p >> 16 & 255) * 8;
  DataCopy(t.a, global(x), loaded);
  fence<HardEvent::MTE2_V>(true, 0);
  Add(t.c, t.a, t.a, computed);
  fence<HardEvent::V_MTE3>(true, 0);
  DataCopy(global(y), t.c, stored);
  if (p >> 24 & 1) {
    PipeBarrier<PIPE_ALL>();
    DataCopy(t.c, global(x), kCount);
    PipeBarrier<PIPE_ALL>();
    DataCopy(global(y), t.c, kCount);
  }
}

// The same for what isn't done lane by lane. bits 0..7: blocks of 8 loaded; bits 8..15: what is asked for; bits 16..:
// how.
extern "C" __global__ __aicore__ void unwritten_use(GM_ADDR x, GM_ADDR y, uint32_t p) {
  Tiles t;
  uint32_t asked = p >> 8 & 255;
  DataCopy(t.a, global(x), (p & 255) * 8);
  PipeBarrier<PIPE_ALL>();
  switch (p >> 16) {
    case 0:  // an element by the scalar unit
      if (t.a.GetValue(asked) > 1e30f) return;
      break;
    case 1:  // sums of repeats of 64 elements; one is stored (in a block of 8 of which 7 are overwritten)
      Duplicate(t.c, 0.0f, 64);
      PipeBarrier<PIPE_V>();
      WholeReduceSum(t.c, t.a, 64, 4, 8, 1, 8);
      PipeBarrier<PIPE_ALL>();
      DataCopy(global(y), t.c[asked * 8], 8);
      break;
    case 2:  // a sum by the count form, whose result takes the way through a register
      ReduceSum(t.c, t.a, t.b, static_cast<int32_t>(asked * 8));
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(global(y), t.c, {1, 4, 0, 0, 0});
      break;
    case 3:  // y itself, of which the host has written `asked` elements: added to in global memory
      SetAtomicAdd<float>();
      DataCopy(global(y), t.a, (p & 255) * 8);
      SetAtomicNone();
      break;
    case 4:  // padding of a piece of 4 bytes: its own first element (asked 0), a value (1), random (2)
      DataCopyPad(t.b, global(x), {1, 4, 0, 0, 0}, {asked == 1, uint8_t(asked == 2), uint8_t(asked == 1), 5.0f});
      PipeBarrier<PIPE_ALL>();
      DataCopy(global(y), t.b, 8);
      break;
    case 5:  // a block of an element each
      Brcb(t.b, t.a[56], 2, {1, 8});
      PipeBarrier<PIPE_ALL>();
      DataCopy(global(y), t.b[asked * 8], 8);
      break;
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
    case 10:  // a flag that nobody waits for
      return SetFlag<HardEvent::MTE2_V>(1);
    case 11:  // a flag that is set twice before a barrier
      SetFlag<HardEvent::MTE2_V>(1);
      SetFlag<HardEvent::MTE2_V>(1);
      return PipeBarrier<PIPE_ALL>();
    case 12: {  // past the tensor, while there is an object that waits when it ends
      struct Waiting {
        ~Waiting() { WaitFlag<HardEvent::V_MTE2>(3); }
      } waiting;
      return DataCopy(a, global(x, 2 * kCount - 16), 64);
    }
    default:
      DataCopy(global(y), a, 0);
  }
}

// Two tiles of y are filled, the third one is copied. bit 0: the copy's load waits for what the fills store from the
// same part of UB; bit 1: the second fill waits for the first one; bit 2: it has another value.
extern "C" __global__ __aicore__ void filled(GM_ADDR x, GM_ADDR y, uint32_t bits) {
  TPipe pipe;
  Tiles t;
  auto first = global(y, kCount), second = global(y, 2 * kCount);
  InitGlobalMemory(first, kCount, 7.0f);
  fence<HardEvent::MTE3_V>(bits & 2, 0);
  Fill(second, kCount, bits & 4 ? 8.0f : 7.0f);
  fence<HardEvent::MTE3_MTE2>(bits & 1, 0);
  DataCopy(t.a, global(x), kCount);
  fence<HardEvent::MTE2_MTE3>(true, 0);
  DataCopy(global(y), t.a, kCount);
}

// A queue raises MTE3_V on event 0 for a freed buffer, and the kernel raises it again. bit 0: the kernel waits for its
// own; bit 1: the buffer is taken again.
extern "C" __global__ __aicore__ void freed(GM_ADDR x, GM_ADDR y, uint32_t bits) {
  TPipe pipe;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(out, 1, kCount * sizeof(float));
  out.FreeTensor(out.AllocTensor<float>());
  SetFlag<HardEvent::MTE3_V>(0);
  if (bits & 1) WaitFlag<HardEvent::MTE3_V>(0);
  if (bits & 2) out.AllocTensor<float>();
}

// A sum, chosen from, and added to, without barriers between. kind: 0 to 2, the mode of Select; 3 more: its form with a
// mask instead of a count.
extern "C" __global__ __aicore__ void chosen(GM_ADDR x, GM_ADDR y, uint32_t kind) {
  Tiles t;
  LocalTensor<uint8_t> bits(TPosition::VECCALC, 16384, kCount);
  const SELMODE mode = static_cast<SELMODE>(kind % 3);
  const BinaryRepeatParams strides;
  const uint64_t mask = 64;
  Duplicate(bits.ReinterpretCast<int32_t>(), -1, kCount / 4);
  DataCopy(t.a, global(x), kCount);
  fence<HardEvent::MTE2_V>(true, 0);
  PipeBarrier<PIPE_V>();
  Add(t.b, t.a, t.a, kCount);
  if (mode == SELMODE::VSEL_TENSOR_SCALAR_MODE) {
    if (kind < 3)
      Select(t.c, bits, t.b, 0.0f, mode, kCount);
    else
      Select(t.c, bits, t.b, 0.0f, mode, mask, 4, strides);
  } else if (kind < 3) {
    Select(t.c, bits, t.b, t.a, mode, kCount);
  } else {
    Select(t.c, bits, t.b, t.a, mode, mask, 4, strides);
  }
  Adds(t.a, t.c, 1.0f, kCount);
  fence<HardEvent::V_MTE3>(true, 0);
  DataCopy(global(y), t.a, kCount);
}

// What lies where Select keeps 8 KB for itself. mode: of Select.
extern "C" __global__ __aicore__ void reserved(GM_ADDR x, GM_ADDR y, uint32_t mode) {
  Tiles t;
  LocalTensor<float> kept(TPosition::VECCALC, (192 - 8) * 1024, kCount);
  LocalTensor<uint8_t> bits(TPosition::VECCALC, 16384, kCount);
  Duplicate(bits.ReinterpretCast<int32_t>(), 0, kCount / 4);
  DataCopy(kept, global(x), kCount);
  DataCopy(t.a, global(x), kCount);
  PipeBarrier<PIPE_ALL>();
  if (mode == 1)
    Select(t.c, bits, t.a, -100.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, kCount);
  else
    Select(t.c, bits, t.a, t.a, static_cast<SELMODE>(mode), kCount);
  PipeBarrier<PIPE_ALL>();
  DataCopy(global(y), kept, kCount);
}

// bit 0: V -> S between the use of a buffer and the numbers that come there next; bit 1: they are at most a block.
extern "C" __global__ __aicore__ void numbered(GM_ADDR x, GM_ADDR y, uint32_t bits) {
  Tiles t;
  DataCopy(t.a, global(x), kCount);
  fence<HardEvent::MTE2_V>(true, 0);
  Add(t.b, t.a, t.a, kCount);
  fence<HardEvent::V_S>(bits & 1, 0);
  CreateVecIndex(t.a, 0.0f, bits & 2 ? 8u : kCount);
  PipeBarrier<PIPE_V>();
  Add(t.c, t.a, t.b, bits & 2 ? 8 : kCount);
  fence<HardEvent::V_MTE3>(true, 0);
  DataCopy(global(y), t.c, bits & 2 ? 8 : kCount);
}

// What uses the result of a call that is made of others, without a barrier between. kind: the call.
extern "C" __global__ __aicore__ void followed(GM_ADDR x, GM_ADDR y, uint32_t kind) {
  Tiles t;
  LocalTensor<uint8_t> temporary(TPosition::VECCALC, 32768, 8192);
  uint32_t wide[2] = {32, 8}, narrow[2] = {32, 1};
  DataCopy(t.a, global(x), kCount);
  fence<HardEvent::MTE2_V>(true, 0);
  PipeBarrier<PIPE_V>();
  if (kind == 0) Tanh(t.b, t.a, temporary, kCount);
  if (kind == 1) Sigmoid(t.b, t.a, temporary, kCount);
  if (kind == 2) Log(t.b, t.a, kCount);
  if (kind == 3) Floor(t.b, t.a, temporary, kCount);
  if (kind == 4) BroadCast<float, 2, 1>(t.b, t.a, wide, narrow, temporary);
  if (kind == 5) Sum(t.b, t.a, temporary, SumParams{1, kCount, kCount});
  if (kind == 6) Sum(t.b, t.a, temporary, SumParams{8, 32, 32});
  Adds(t.c, t.b, 1.0f, 8);
}
