// Verified kernels that synchronize themselves, each by its own means: flags and barriers.
#include "mutant_kernels.h"

// ---- flags ----
KERNEL(flags_once) {
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_V>();
  Add(c, a, a, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, N);
}
KERNEL(flags_loop) {
  auto a = tile(0), c = tile(1);
  for (uint32_t i = 0; i < 3; i++) {
    if (i) WaitFlag<HardEvent::V_MTE2>(1);
    DataCopy(a, gm(x, i * N), N);
    fence<HardEvent::MTE2_V>();
    if (i) WaitFlag<HardEvent::MTE3_V>(1);
    Adds(c, a, 1.0f, N);
    if (i < 2) SetFlag<HardEvent::V_MTE2>(1);
    fence<HardEvent::V_MTE3>();
    DataCopy(gm(y, i * N), c, N);
    if (i < 2) SetFlag<HardEvent::MTE3_V>(1);
  }
}
KERNEL(flags_ping_pong) {
  SetFlag<HardEvent::MTE3_MTE2>(0);
  SetFlag<HardEvent::MTE3_MTE2>(1);
  for (int32_t i = 0; i < 4; i++) {
    int32_t k = i % 2;
    auto a = tile(k);
    WaitFlag<HardEvent::MTE3_MTE2>(k);
    DataCopy(a, gm(x, i * N), N);
    SetFlag<HardEvent::MTE2_V>(k);
    WaitFlag<HardEvent::MTE2_V>(k);
    Muls(a, a, 3.0f, N);
    SetFlag<HardEvent::V_MTE3>(k);
    WaitFlag<HardEvent::V_MTE3>(k);
    DataCopy(gm(y, i * N), a, N);
    SetFlag<HardEvent::MTE3_MTE2>(k);
  }
  WaitFlag<HardEvent::MTE3_MTE2>(0);
  WaitFlag<HardEvent::MTE3_MTE2>(1);
}
KERNEL(flags_two_inputs) {
  auto a = tile(0), b = tile(1), c = tile(2);
  DataCopy(a, gm(x), N);
  SetFlag<HardEvent::MTE2_V>(0);
  DataCopy(b, gm(x, N), N);
  SetFlag<HardEvent::MTE2_V>(1);
  WaitFlag<HardEvent::MTE2_V>(0);
  Exp(a, a, N);
  WaitFlag<HardEvent::MTE2_V>(1);
  PipeBarrier<PIPE_V>();
  Add(c, a, b, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, N);
}
KERNEL(flags_between_copies) {
  auto a = tile(0);
  for (uint32_t i = 0; i < 2; i++) {
    DataCopy(a, gm(x, i * N), N);
    fence<HardEvent::MTE2_MTE3>();
    DataCopy(gm(y, i * N), a, N);
    if (i == 0) fence<HardEvent::MTE3_MTE2>();
  }
}
KERNEL(flags_by_id) {
  TPipe pipe;
  Calc ba, bc;
  pipe.InitBuffer(ba, 1024);
  pipe.InitBuffer(bc, 1024);
  auto a = ba.Get<float>(), c = bc.Get<float>();
  auto e = pipe.AllocEventID<HardEvent::MTE2_V>();
  DataCopy(a, gm(x), N);
  SetFlag<HardEvent::MTE2_V>(e);
  WaitFlag<HardEvent::MTE2_V>(e);
  pipe.ReleaseEventID<HardEvent::MTE2_V>(e);
  Abs(c, a, N);
  auto f = pipe.FetchEventID(HardEvent::V_MTE3);
  SetFlag<HardEvent::V_MTE3>(f);
  WaitFlag<HardEvent::V_MTE3>(f);
  DataCopy(gm(y), c, N);
}
KERNEL(flags_sync_class) {
  auto a = tile(0), c = tile(1);
  TQueSync<PIPE_MTE2, PIPE_V> loaded;
  TQueSync<PIPE_V, PIPE_MTE3> computed;
  DataCopy(a, gm(x), N);
  loaded.SetFlag(0);
  loaded.WaitFlag(0);
  Maxs(c, a, 0.5f, N);
  computed.SetFlag(0);
  computed.WaitFlag(0);
  DataCopy(gm(y), c, N);
}
KERNEL(flags_transitive) {  // the store waits for the vector unit, which has waited for the load
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_V>();
  Adds(c, a, 2.0f, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), a, N);
  DataCopy(gm(y, N), c, N);
}

// ---- barriers ----
KERNEL(barrier_all) {
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x), N);
  PipeBarrier<PIPE_ALL>();
  Add(c, a, a, N);
  PipeBarrier<PIPE_ALL>();
  DataCopy(gm(y), c, N);
}
KERNEL(barrier_chain) {
  auto a = tile(0), b = tile(1), c = tile(2);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_V>();
  Adds(b, a, 1.0f, N);
  PipeBarrier<PIPE_V>();
  Mul(c, b, b, N);
  PipeBarrier<PIPE_V>();
  Sub(c, c, a, N);
  PipeBarrier<PIPE_V>();
  Muls(b, c, 0.5f, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), b, N);
}
KERNEL(barrier_in_place) {
  auto a = tile(0);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_V>();
  Exp(a, a, N);
  PipeBarrier<PIPE_V>();
  Adds(a, a, 1.0f, N);
  PipeBarrier<PIPE_V>();
  Ln(a, a, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), a, N);
}
KERNEL(barrier_loads) {
  auto a = tile(0);
  DataCopy(a, gm(x), N);
  PipeBarrier<PIPE_MTE2>();
  DataCopy(a[N / 2], gm(x, N), N / 2);
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(y), a, N);
}
KERNEL(barrier_stores) {
  auto a = tile(0);
  DataCopy(a, gm(x), 2 * N);
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(y), a, N);
  PipeBarrier<PIPE_MTE3>();
  DataCopy(gm(y, N / 2), a[N], N);
}
KERNEL(barrier_atomic) {
  auto a = tile(0), c = tile(1);
  Duplicate(c, 1.0f, N);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_MTE3>();
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, N);
  PipeBarrier<PIPE_MTE3>();
  SetAtomicAdd<float>();
  DataCopy(gm(y), a, N);
  DataCopy(gm(y), a, N);  // two additions need no order
  SetAtomicNone();
}
KERNEL(barrier_parts) {  // independent halves need no barrier, their sum does
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_V>();
  Adds(c, a, 1.0f, N / 2);
  Adds(c[N / 2], a[N / 2], 2.0f, N / 2);
  PipeBarrier<PIPE_V>();
  Add(c, c, c[N / 2], N / 2);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, N / 2);
}
