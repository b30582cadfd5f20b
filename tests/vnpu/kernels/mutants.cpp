// Verified kernels that synchronize themselves: each uses its own means. x and w hold 4096 floats, y gets the result.
#include "mutants.h"

using namespace AscendC;

namespace {
constexpr uint32_t N = 256;  // floats a tile, 1 KiB

GlobalTensor<float> gm(GM_ADDR p, uint32_t offset = 0) {
  GlobalTensor<float> g;
  g.SetGlobalBuffer(reinterpret_cast<float*>(p) + offset);
  return g;
}
template <typename T = float>
LocalTensor<T> tile(uint32_t number) {
  return LocalTensor<T>(TPosition::VECCALC, number * 2048, 2048 / sizeof(T));
}
template <HardEvent event>
ASCENDC_INLINE void fence(int32_t id = 0) {
  SetFlag<event>(id);
  WaitFlag<event>(id);
}
using In = TQue<TPosition::VECIN, 1>;
using Out = TQue<TPosition::VECOUT, 1>;
using Calc = TBuf<TPosition::VECCALC>;
}  // namespace

#define KERNEL(NAME) extern "C" __global__ __aicore__ void NAME(GM_ADDR x, GM_ADDR y, GM_ADDR w)

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

// ---- queues ----
KERNEL(queue_single) {
  TPipe pipe;
  In in;
  Out out;
  pipe.InitBuffer(in, 1, 1024);
  pipe.InitBuffer(out, 1, 1024);
  for (uint32_t i = 0; i < 3; i++) {
    auto a = in.AllocTensor<float>();
    DataCopy(a, gm(x, i * N), N);
    in.EnQue(a);
    a = in.DeQue<float>();
    auto c = out.AllocTensor<float>();
    Add(c, a, a, N);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(gm(y, i * N), c, N);
    out.FreeTensor(c);
  }
}
KERNEL(queue_double) {
  TPipe pipe;
  In in;
  Out out;
  pipe.InitBuffer(in, 2, 1024);
  pipe.InitBuffer(out, 2, 1024);
  for (uint32_t i = 0; i < 5; i++) {
    auto a = in.AllocTensor<float>();
    DataCopy(a, gm(x, i * N), N);
    in.EnQue(a);
    a = in.DeQue<float>();
    auto c = out.AllocTensor<float>();
    Muls(c, a, 2.0f, N);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(gm(y, i * N), c, N);
    out.FreeTensor(c);
  }
}
KERNEL(queue_two_inputs) {
  TPipe pipe;
  In ia, ib;
  Out out;
  pipe.InitBuffer(ia, 1, 1024);
  pipe.InitBuffer(ib, 1, 1024);
  pipe.InitBuffer(out, 1, 1024);
  for (uint32_t i = 0; i < 2; i++) {
    auto a = ia.AllocTensor<float>(), b = ib.AllocTensor<float>();
    DataCopy(a, gm(x, i * N), N);
    ia.EnQue(a);
    DataCopy(b, gm(x, (i + 4) * N), N);
    ib.EnQue(b);
    a = ia.DeQue<float>();
    b = ib.DeQue<float>();
    auto c = out.AllocTensor<float>();
    Sub(c, a, b, N);
    out.EnQue(c);
    ia.FreeTensor(a);
    ib.FreeTensor(b);
    c = out.DeQue<float>();
    DataCopy(gm(y, i * N), c, N);
    out.FreeTensor(c);
  }
}
KERNEL(queue_preload) {
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  Out out;
  pipe.InitBuffer(in, 2, 1024);
  pipe.InitBuffer(out, 1, 1024);
  for (uint32_t i = 0; i < 2; i++) {
    for (uint32_t k = 0; k < 2; k++) {
      auto a = in.AllocTensor<float>();
      DataCopy(a, gm(x, (2 * i + k) * N), N);
      in.EnQue(a);
    }
    auto a = in.DeQue<float>(), b = in.DeQue<float>();
    auto c = out.AllocTensor<float>();
    Max(c, a, b, N);
    out.EnQue(c);
    in.FreeTensor(a);
    in.FreeTensor(b);
    c = out.DeQue<float>();
    DataCopy(gm(y, i * N), c, N);
    out.FreeTensor(c);
  }
}
KERNEL(queue_with_buffer) {
  TPipe pipe;
  In in;
  Out out;
  Calc calc;
  pipe.InitBuffer(in, 1, 1024);
  pipe.InitBuffer(out, 1, 1024);
  pipe.InitBuffer(calc, 1024);
  auto t = calc.Get<float>();
  for (uint32_t i = 0; i < 2; i++) {
    auto a = in.AllocTensor<float>();
    DataCopy(a, gm(x, i * N), N);
    in.EnQue(a);
    a = in.DeQue<float>();
    Mul(t, a, a, N);
    PipeBarrier<PIPE_V>();
    Adds(t, t, 1.0f, N);
    PipeBarrier<PIPE_V>();
    auto c = out.AllocTensor<float>();
    Sqrt(c, t, N);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(gm(y, i * N), c, N);
    out.FreeTensor(c);
    PipeBarrier<PIPE_V>();
  }
}
KERNEL(queue_bound) {  // from load to store without the vector unit
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> que;
  pipe.InitBuffer(que, 1, 1024);
  for (uint32_t i = 0; i < 3; i++) {
    auto a = que.AllocTensor<float>();
    DataCopy(a, gm(x, i * N), N);
    que.EnQue(a);
    a = que.DeQue<float>();
    DataCopy(gm(y, i * N), a, N);
    que.FreeTensor(a);
  }
}
KERNEL(queue_chain) {  // the scalar unit looks at what was loaded
  TPipe pipe;
  In in;
  Out out;
  pipe.InitBuffer(in, 1, 1024);
  pipe.InitBuffer(out, 1, 1024);
  for (uint32_t i = 0; i < 2; i++) {
    auto a = in.AllocTensor<float>();
    DataCopy(a, gm(x, i * N), N);
    in.EnQue(a);
    a = in.DeQue<float>();
    fence<HardEvent::MTE2_S>();
    float first = a.GetValue(0);
    auto c = out.AllocTensor<float>();
    Adds(c, a, first, N);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(gm(y, i * N), c, N);
    out.FreeTensor(c);
  }
}
KERNEL(queue_tails) {
  TPipe pipe;
  In in;
  Out out;
  pipe.InitBuffer(in, 2, 1024);
  pipe.InitBuffer(out, 2, 1024);
  for (uint32_t i = 0; i < 3; i++) {
    uint32_t n = i < 2 ? N : 37;
    auto a = in.AllocTensor<float>();
    DataCopyPad(a, gm(x, i * N), {1, n * 4, 0, 0, 0}, {false, 0, 0, 0.0f});
    in.EnQue(a);
    a = in.DeQue<float>();
    auto c = out.AllocTensor<float>();
    Relu(c, a, n);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopyPad(gm(y, i * N), c, {1, n * 4, 0, 0, 0});
    out.FreeTensor(c);
  }
}

// ---- the scalar unit ----
KERNEL(scalar_fill) {
  auto a = tile(0);
  for (uint32_t i = 0; i < 16; i++) a.SetValue(i, static_cast<float>(i));
  fence<HardEvent::S_MTE3>();
  DataCopy(gm(y), a, 16);
}
KERNEL(scalar_to_vector) {
  auto a = tile(0), c = tile(1);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_S>();
  a.SetValue(3, a.GetValue(4));
  fence<HardEvent::S_V>();
  fence<HardEvent::MTE2_V>();
  Adds(c, a, 0.0f, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, N);
}
KERNEL(scalar_from_vector) {
  auto a = tile(0), c = tile(1), t = tile(2);
  DataCopy(a, gm(x), N);
  fence<HardEvent::MTE2_V>();
  WholeReduceMax(t, a, 64, 4, 1, 1, 8);
  fence<HardEvent::V_S>();
  float m = t.GetValue(0);
  Adds(c, a, -m, N);
  fence<HardEvent::V_MTE3>();
  DataCopy(gm(y), c, N);
}
KERNEL(scalar_register) {
  auto a = tile(0), t = tile(2);
  DataCopy(a, gm(x), 64);
  fence<HardEvent::MTE2_V>();
  WholeReduceMax(t, a, 64, 1, 1, 1, 8);
  fence<HardEvent::V_S>();
  float value = 0, index = 0;
  GetReduceMaxMinCount(value, index);
  fence<HardEvent::V_MTE3>();
  t.SetValue(8, value);
  fence<HardEvent::S_MTE3>();
  DataCopyPad(gm(y), t[8], {1, 4, 0, 0, 0});
}
KERNEL(scalar_neighbours) {  // one block, other bytes: no fence between the first two
  auto a = tile(0), c = tile(1);
  Duplicate(a, 1.0f, 4);
  a.SetValue(5, 2.0f);
  fence<HardEvent::V_S>();
  a.SetValue(0, 3.0f);
  fence<HardEvent::S_V>();
  Adds(c, a, 0.0f, 4);
  fence<HardEvent::V_MTE3>();
  DataCopyPad(gm(y), c, {1, 16, 0, 0, 0});
}

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
