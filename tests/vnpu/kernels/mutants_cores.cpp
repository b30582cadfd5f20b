// Verified kernels that synchronize themselves, each by its own means: other instructions, global memory and cores.
#include "mutant_kernels.h"

// ---- other instructions ----
KERNEL(vector_cast) {
  auto a = tile(0), c = tile(1);
  auto h = tile<half>(2);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_V>();
  Cast(h, a, RoundMode::CAST_RINT, N);
  PipeBarrier<PIPE_V>();
  Add(h, h, h, N);
  PipeBarrier<PIPE_V>();
  Cast(c, h, RoundMode::CAST_NONE, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, N);
}
KERNEL(vector_select) {
  auto a = tile(0), b = tile(1), c = tile(3);
  auto m = tile<uint8_t>(2);
  DataCopy(a, gm(x), N);
  DataCopy(b, gm(x, N), N);
  fence<HardEvent::MTE2_V>();
  Compare(m, a, b, CMPMODE::LT, N);
  PipeBarrier<PIPE_V>();
  Select(c, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, N);
}
KERNEL(vector_gather) {
  auto a = tile(0), c = tile(1);
  auto o = tile<int32_t>(2);
  DataCopy(a, gm(x), 64);
  for (int32_t i = 0; i < 8; i++) o.SetValue(i, (7 - i) * 4);
  fence<HardEvent::S_V>();
  fence<HardEvent::MTE2_V>();
  Gather(c, a, o.ReinterpretCast<uint32_t>(), 0, 8);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, 8);
}
KERNEL(vector_strides) {  // even blocks and odd blocks of one tile
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x), {4, 1, 1, 1});
  DataCopy(a[8], gm(x, 8), {4, 1, 1, 1});
  fence<HardEvent::MTE2_V>();
  Adds(c, a, 1.0f, 8, 4, {1, 1, 2, 2});
  Adds(c[8], a[8], 2.0f, 8, 4, {1, 1, 2, 2});
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, 64);
}
KERNEL(vector_rows) {
  auto a = tile(0), s = tile(2), b = tile(3);
  DataCopy(a, gm(x), 8 * 64);
  fence<HardEvent::MTE2_V>();
  WholeReduceSum(s, a, 64, 8, 1, 1, 8);
  PipeBarrier<PIPE_V>();
  Brcb(b, s, 1, {1, 8});
  PipeBarrier<PIPE_V>();
  Sub(a, a, b, 64, 8, {1, 1, 0, 8, 8, 1});
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), a, 8 * 64);
}
KERNEL(vector_sort) {
  auto a = tile(0), s = tile(1);
  auto o = tile<int32_t>(2);
  DataCopy(a, gm(x), 32);
  for (int32_t i = 0; i < 32; i++) o.SetValue(i, i);
  fence<HardEvent::S_V>();
  fence<HardEvent::MTE2_V>();
  Sort32(s, a, o.ReinterpretCast<uint32_t>(), 1);
  PipeBarrier<PIPE_V>();
  uint64_t kept = 0;
  GatherMask(a, s, 1, false, 0, {1, 1, 8, 0}, kept);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), a, 32);
}
KERNEL(local_copies) {
  auto a = tile(0), b = tile(1), c = tile(2);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_V>();
  DataCopy(b, a, N);
  PipeBarrier<PIPE_V>();
  Add(c, a, b, N);
  PipeBarrier<PIPE_V>();
  DataCopy(b, c, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), b, N);
}

// ---- global memory and cores ----
KERNEL(through_global) {
  auto a = tile(0), b = tile(1);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(w), a, N);
  fence<HardEvent::MTE3_MTE2>();
  DataCopy(b, gm(w, 8), N - 8);
  fence<HardEvent::MTE2_MTE3>(1);
  DataCopy(gm(y), b, N - 8);
}
KERNEL(cores_apart) {
  uint32_t at = GetBlockIdx() * N;
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x, at), N);
  fence<HardEvent::MTE2_V>();
  Add(c, a, a, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y, at), c, N);
}
KERNEL(cores_exchange) {
  uint32_t me = GetBlockIdx(), other = (me + 1) % GetBlockNum();
  auto a = tile(0);
  DataCopy(a, gm(x, me * N), N);
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(w, me * N), a, N);
  SyncAll();
  DataCopy(a, gm(w, other * N), N);
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(y, me * N), a, N);
}
KERNEL(cores_rounds) {
  uint32_t me = GetBlockIdx(), other = (me + 1) % GetBlockNum();
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x, me * N), N);
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(w, me * N), a, N);
  for (uint32_t round = 0; round < 2; round++) {
    SyncAll();
    DataCopy(a, gm(w, other * N), N);
    fence<HardEvent::MTE2_V>();
    Adds(c, a, 1.0f, N);
    SyncAll();
    fence<HardEvent::V_MTE3>();
    DataCopy(gm(w, me * N), c, N);
  }
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y, me * N), c, N);
}
KERNEL(cores_flag) {
  uint32_t me = GetBlockIdx(), other = (me + 1) % GetBlockNum();
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x, me * N), N);
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(w, me * N), a, N);
  CrossCoreSetFlag<0, PIPE_MTE3>(3);
  CrossCoreWaitFlag(3);
  DataCopy(c, gm(w, other * N), N);
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(y, me * N), c, N);
}
KERNEL(cores_flag_rounds) {
  uint32_t me = GetBlockIdx(), other = (me + 1) % GetBlockNum();
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x, me * N), N);
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(w, me * N), a, N);
  for (uint32_t round = 0; round < 2; round++) {
    CrossCoreSetFlag<0, PIPE_MTE3>(0);  // w is written
    CrossCoreWaitFlag(0);
    DataCopy(a, gm(w, other * N), N);
    CrossCoreSetFlag<0, PIPE_MTE2>(1);  // and read
    fence<HardEvent::MTE2_V>();
    if (round) fence<HardEvent::MTE3_V>(1);
    Adds(c, a, 1.0f, N);
    fence<HardEvent::V_MTE2>();
    CrossCoreWaitFlag(1);
    fence<HardEvent::V_MTE3>();
    DataCopy(gm(w, me * N), c, N);
  }
  DataCopy(gm(y, me * N), c, N);
}
KERNEL(cores_sum) {
  uint32_t me = GetBlockIdx();
  auto a = tile(0), t = tile(2);
  DataCopy(a, gm(x, me * N), N);
  fence<HardEvent::MTE2_V>();
  WholeReduceMax(t, a, 64, 4, 1, 1, 8);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(w, me * 8), t, 8);
  SyncAll();
  if (me) return;
  DataCopy(a, gm(w), 8 * GetBlockNum());
  fence<HardEvent::MTE2_MTE3>();
  DataCopy(gm(y), a, 8 * GetBlockNum());
}
KERNEL(cores_atomic) {
  auto a = tile(0);
  if (GetBlockIdx() == 0) {
    Duplicate(a, 0.0f, N);
    fence<HardEvent::V_MTE3>();
    DataCopy(gm(y), a, N);
  }
  SyncAll();
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_MTE3>();
  SetAtomicAdd<float>();
  DataCopy(gm(y), a, N);
  SetAtomicNone();
}
