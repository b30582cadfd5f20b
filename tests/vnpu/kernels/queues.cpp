// Queues whose flags depend on the positions they lead between, on their depth, and on what becomes of their TPipe.
#include "kernel_operator.h"
using namespace AscendC;

constexpr uint32_t kCount = 256;

__aicore__ inline GlobalTensor<float> global(GM_ADDR p, uint32_t element = 0) {
  GlobalTensor<float> t;
  t.SetGlobalBuffer((__gm__ float*)p + element);
  return t;
}

// One buffer is loaded, added to and stored. bit 0: it goes through the queue from GM to UB before it is added to; bit
// 1: from UB to GM behind. Else it goes through without positions.
extern "C" __global__ __aicore__ void bound(GM_ADDR x, GM_ADDR y, uint32_t bits) {
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> queue;
  pipe.InitBuffer(queue, 1, kCount * sizeof(float));
  for (uint32_t i = 0; i < 4; i++) {
    auto a = queue.AllocTensor<float>();
    DataCopy(a, global(x, i * kCount), kCount);
    if (bits & 1) {
      queue.EnQue<TPosition::GM, TPosition::VECIN>(a);
      a = queue.DeQue<TPosition::GM, TPosition::VECIN, float>();
    } else {
      queue.EnQue(a);
      a = queue.DeQue<float>();
    }
    Adds(a, a, 1.0f, kCount);
    if (bits & 2) {
      queue.EnQue<TPosition::VECOUT, TPosition::GM>(a);
      a = queue.DeQue<TPosition::VECOUT, TPosition::GM, float>();
    } else {
      queue.EnQue(a);
      a = queue.DeQue<float>();
    }
    DataCopy(global(y, i * kCount), a, kCount);
    queue.FreeTensor(a);
  }
}

// Two vector instructions, the second one on what the first one wrote. What stands in between: 0 a queue of VECCALC,
// 1 the flag from V to itself set, 2 waited for.
extern "C" __global__ __aicore__ void between(GM_ADDR x, GM_ADDR y, uint32_t what) {
  TPipe pipe;
  TQue<TPosition::VECCALC, 1> queue;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(queue, 1, kCount * sizeof(float));
  pipe.InitBuffer(out, 1, kCount * sizeof(float));
  auto a = queue.AllocTensor<float>();
  auto c = out.AllocTensor<float>();
  Duplicate(a, 1.0f, kCount);
  if (what == 0) {
    queue.EnQue(a);
    a = queue.DeQue<float>();
  }
  if (what == 1) SetFlag<HardEvent::V_V>(0);
  if (what == 2) WaitFlag<HardEvent::V_V>(0);
  Add(c, a, a, kCount);
  out.EnQue(c);
  DataCopy(global(y), out.DeQue<float>(), kCount);
}

template <int32_t depth>
__aicore__ inline void doubled(TPipe& pipe, GM_ADDR x, GM_ADDR y, uint32_t tiles, bool frees) {
  TQue<TPosition::VECIN, depth> in;
  TQue<TPosition::VECOUT, depth> out;
  pipe.InitBuffer(in, 2, kCount * sizeof(float));
  pipe.InitBuffer(out, 2, kCount * sizeof(float));
  for (uint32_t i = 0; i < tiles; i++) {
    LocalTensor<float> a, c;
    if constexpr (depth == 0)
      in.AllocTensor(a);
    else
      a = in.template AllocTensor<float>();
    DataCopy(a, global(x, i * kCount), kCount);
    in.EnQue(a);
    if constexpr (depth == 0) {
      in.DeQue(a);
      out.AllocTensor(c);
    } else {
      a = in.template DeQue<float>();
      c = out.template AllocTensor<float>();
    }
    Add(c, a, a, kCount);
    out.EnQue(c);
    if (frees) in.FreeTensor(a);
    if constexpr (depth == 0)
      out.DeQue(c);
    else
      c = out.template DeQue<float>();
    DataCopy(global(y, i * kCount), c, kCount);
    if (frees) out.FreeTensor(c);
  }
}

// A queue of depth 0, whose tensors are the kernel's own; then the ids that are free while it has two buffers a side.
extern "C" __global__ __aicore__ void in_place(GM_ADDR x, GM_ADDR y, uint32_t tiles) {
  TPipe pipe;
  doubled<0>(pipe, x, y, tiles, true);
  const HardEvent events[] = {HardEvent::MTE2_V, HardEvent::V_MTE2, HardEvent::V_MTE3, HardEvent::MTE3_V};
  for (uint32_t i = 0; i < 4; i++) global(y, 3 * kCount).SetValue(i, pipe.FetchEventID(events[i]));
}

// The same buffers again, twelve times. bit 0: tensors are freed before; bit 1: by Destroy and Init, else by Reset.
extern "C" __global__ __aicore__ void again(GM_ADDR x, GM_ADDR y, uint32_t bits) {
  TPipe pipe;
  for (uint32_t i = 0; i < 12; i++) {
    doubled<1>(pipe, x, y, 2, bits & 1);
    if (bits & 2) {
      pipe.Destroy();
      pipe.Init();
    } else {
      pipe.Reset();
      PipeBarrier<PIPE_MTE3>();
    }
  }
}
