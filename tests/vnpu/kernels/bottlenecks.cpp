// Kernels that are each held back by one thing; test_diagnosis.py asks for its name.
#include "kernel_operator.h"

using namespace AscendC;

namespace {
GlobalTensor<float> global(GM_ADDR p, uint32_t offset) {
  GlobalTensor<float> g;
  g.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(p) + offset);
  return g;
}
}  // namespace

// Tiles of `tile` floats: in, `operations` times Adds, out; `buffers` per queue; block 0 has `skew` times as many tiles.
extern "C" __global__ __aicore__ void stream(GM_ADDR x, GM_ADDR y, uint32_t tile, uint32_t tiles, uint32_t buffers,
                                             uint32_t operations, uint32_t skew) {
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  TQue<TPosition::VECOUT, 2> out;
  pipe.InitBuffer(in, buffers, tile * sizeof(float));
  pipe.InitBuffer(out, buffers, tile * sizeof(float));
  if (GetBlockIdx() == 0) tiles *= skew;
  for (uint32_t i = 0; i < tiles; i++) {
    uint32_t at = (GetBlockIdx() * 64 + i) * tile;
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, global(x, at), tile);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    for (uint32_t k = 0; k < operations; k++) {
      Adds(b, k ? b : a, 1.0f, tile);
      PipeBarrier<PIPE_V>();
    }
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.DeQue<float>();
    DataCopy(global(y, at), b, tile);
    out.FreeTensor(b);
  }
}

// Loads of 16 KiB, all from L2.
extern "C" __global__ __aicore__ void loads(GM_ADDR x, GM_ADDR y, uint32_t count) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 4 * 4096);
  for (uint32_t i = 0; i < count; i++) {
    if (i % 4 == 0) PipeBarrier<PIPE_MTE2>();
    DataCopy(a[i % 4 * 4096], global(x, (GetBlockIdx() * 16 + i % 16) * 4096), 4096);
  }
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  DataCopy(global(y, GetBlockIdx() * 4096), a, 4096);
}

extern "C" __global__ __aicore__ void rows(GM_ADDR x, GM_ADDR y, uint32_t count) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 16 * 256);
  for (uint32_t i = 0; i < count; i++) {
    if (i % 256 == 0) PipeBarrier<PIPE_MTE2>();
    DataCopy(a[i % 256 * 16], global(x, i % 256 * 16), 16);
  }
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  DataCopy(global(y, GetBlockIdx() * 4096), a, 4096);
}

extern "C" __global__ __aicore__ void elements(GM_ADDR, GM_ADDR y, uint32_t count) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 1024);
  for (uint32_t i = 0; i < count; i++) a.SetValue(i % 1024, 2 * a.GetValue(i % 1024));
  SetFlag<HardEvent::S_MTE3>(0);
  WaitFlag<HardEvent::S_MTE3>(0);
  DataCopy(global(y, GetBlockIdx() * 1024), a, 1024);
}

// A reduction whose result the scalar unit reads, row by row, and `more` times again.
extern "C" __global__ __aicore__ void round_trips(GM_ADDR, GM_ADDR y, uint32_t count, uint32_t more) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 1024), work(TPosition::VECCALC, 8192, 1024),
      sum(TPosition::VECCALC, 16384, 8);
  Duplicate(a, 1.0f, 1024);
  PipeBarrier<PIPE_V>();
  for (uint32_t i = 0; i < count; i++) {
    WholeReduceSum(sum, a, 64, 1, 1, 1, 8);
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    float value = sum.GetValue(0);
    for (uint32_t k = 0; k < more; k++) value += sum.GetValue(0);
    SetFlag<HardEvent::S_V>(0);
    WaitFlag<HardEvent::S_V>(0);
    Adds(a, a, value, 64);
    PipeBarrier<PIPE_V>();
  }
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(global(y, GetBlockIdx() * 1024), a, 1024);
}

// `bytes`: where the second source starts; a multiple of 512 shares its banks with the first.
extern "C" __global__ __aicore__ void vectors(GM_ADDR, GM_ADDR y, uint32_t count, uint32_t length, uint32_t bytes) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 4096), b(TPosition::VECCALC, bytes, 4096),
      c(TPosition::VECCALC, 65536 + 256, 8 * 4096 - 128);
  Duplicate(a, 1.0f, 4096);
  Duplicate(b, 1.0f, 4096);
  PipeBarrier<PIPE_V>();
  // Every result has a place of its own, as far as they go: then they are written again.
  uint32_t places = (196608 - 65536 - 512) / (length * sizeof(float));
  for (uint32_t i = 0; i < count; i++) {
    if (i % places == 0) PipeBarrier<PIPE_V>();
    Add(c[i % places * length], a, b, length);
  }
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(global(y, GetBlockIdx() * 4096), c, length);
}

extern "C" __global__ __aicore__ void meetings(GM_ADDR, GM_ADDR y, uint32_t count) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 4096);
  for (uint32_t i = 0; i < count; i++) {
    Duplicate(a, 1.0f, 4096);
    SyncAll();
  }
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(global(y, GetBlockIdx() * 4096), a, 4096);
}
