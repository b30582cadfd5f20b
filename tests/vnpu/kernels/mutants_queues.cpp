// Verified kernels that synchronize themselves, each by its own means: queues and the scalar unit.
#include "mutant_kernels.h"

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
