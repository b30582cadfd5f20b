// z = x + y, half [8192, 8192], rows split over the blocks. Piece by piece: two copies in, Add, one copy out.
//   LENGTH   elements of a piece
//   BUFFERS  1: pieces one after another; 2: ping and pong
//   BYPASS   1: x and y are read past L2
//   SPREAD   1: x and y in bank groups that don't meet, z in a bank of its own (BUFFERS 2)
//   SCALAR   1: the scalar unit adds, element by element
#include "kernel_operator.h"

#ifndef BUFFERS
#define BUFFERS 1
#endif
#ifndef BYPASS
#define BYPASS 0
#endif
#ifndef SPREAD
#define SPREAD 0
#endif
#ifndef SCALAR
#define SCALAR 0
#endif

using namespace AscendC;

constexpr uint32_t kRows = 8192, kColumns = 8192;
constexpr uint32_t kSlot = 16384 * sizeof(half);  // bytes of one buffer

struct Buffers {
  uint32_t x, y, z;
};

__aicore__ inline Buffers BuffersOf(uint32_t which) {
#if SPREAD
  return {which * 2 * kSlot, which * 2 * kSlot + LENGTH * 2, 4 * kSlot + which * LENGTH * 2};
#else
  return {which * 3 * kSlot, which * 3 * kSlot + kSlot, which * 3 * kSlot + 2 * kSlot};
#endif
}

__aicore__ inline void Sum(LocalTensor<half>& z, LocalTensor<half>& x, LocalTensor<half>& y, uint32_t n) {
#if SCALAR
  for (uint32_t e = 0; e < n; e++) {
    float sum = static_cast<float>(x.GetValue(e)) + static_cast<float>(y.GetValue(e));
    z.SetValue(e, static_cast<half>(sum));
  }
#else
  Add(z, x, y, n);
#endif
}

// A piece of n elements: it waits for its buffers where they were used before, and frees them where they will be.
__aicore__ inline void Piece(const GlobalTensor<half>& x, const GlobalTensor<half>& y, const GlobalTensor<half>& z,
                             uint32_t n, int32_t id, bool waits, bool frees) {
  const Buffers b = BuffersOf(id);
  LocalTensor<half> a(TPosition::VECCALC, b.x, kSlot / 2), c(TPosition::VECCALC, b.y, kSlot / 2),
      d(TPosition::VECCALC, b.z, kSlot / 2);
  if (waits) WaitFlag<HardEvent::V_MTE2>(id);
  DataCopy(a, x, n);
  DataCopy(c, y, n);
  SetFlag<HardEvent::MTE2_V>(id);
  WaitFlag<HardEvent::MTE2_V>(id);
  if (waits) WaitFlag<HardEvent::MTE3_V>(id);
  Sum(d, a, c, n);
  if (frees) SetFlag<HardEvent::V_MTE2>(id);
  SetFlag<HardEvent::V_MTE3>(id);
  WaitFlag<HardEvent::V_MTE3>(id);
  DataCopy(z, d, n);
  if (frees) SetFlag<HardEvent::MTE3_V>(id);
}

extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  const uint32_t blocks = GetBlockNum(), block = GetBlockIdx(), each = kRows / blocks, more = kRows % blocks;
  const uint32_t rows = each + (block < more ? 1 : 0), first = block * each + (block < more ? block : more);
  const uint32_t total = rows * kColumns;
  GlobalTensor<half> xs, ys, zs;
  xs.SetGlobalBuffer((__gm__ half*)x + first * kColumns, total);
  ys.SetGlobalBuffer((__gm__ half*)y + first * kColumns, total);
  zs.SetGlobalBuffer((__gm__ half*)z + first * kColumns, total);
#if BYPASS
  xs.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
  ys.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
#endif
  const uint32_t pieces = (total + LENGTH - 1) / LENGTH;
#if BUFFERS == 2
  for (int32_t id = 0; id < 2; id++) {
    SetFlag<HardEvent::V_MTE2>(id);
    SetFlag<HardEvent::MTE3_V>(id);
  }
#endif
  for (uint32_t i = 0; i < pieces; i++) {
    const bool waits = BUFFERS == 2 || i > 0, frees = BUFFERS == 2 || i + 1 < pieces;
    const uint32_t at = i * LENGTH, n = total - at < LENGTH ? total - at : LENGTH;
    const int32_t id = static_cast<int32_t>(i % BUFFERS);
    Piece(xs[at], ys[at], zs[at], n, id, waits, frees);
  }
#if BUFFERS == 2
  for (int32_t id = 0; id < 2; id++) {
    WaitFlag<HardEvent::V_MTE2>(id);
    WaitFlag<HardEvent::MTE3_V>(id);
  }
#endif
  PipeBarrier<PIPE_ALL>();
}
