// TPipe objects one after another, each with nearly all of a memory; the old one's queues are gone with it.
#include "kernel_operator.h"
using namespace AscendC;

constexpr uint32_t kCount = 512, kMost = 80 * 1024;  // elements; bytes of a buffer, of which two fit in UB

__aicore__ inline GlobalTensor<float> global(GM_ADDR p) {
  GlobalTensor<float> t;
  t.SetGlobalBuffer((__gm__ float*)p);
  return t;
}

// y = x + 1. How it ends: 0 by its destructor, 1 by Destroy, 2 by DestroyWithoutPipeAll.
class Step {
 public:
  __aicore__ inline void run(GM_ADDR x, GM_ADDR y, uint32_t ends) {
    pipe_.InitBuffer(in_, 1, kMost);
    pipe_.InitBuffer(out_, 1, kMost);
    auto a = in_.AllocTensor<float>();
    DataCopy(a, global(x), kCount);
    in_.EnQue(a);
    a = in_.DeQue<float>();
    auto b = out_.AllocTensor<float>();
    Adds(b, a, 1.0f, kCount);
    in_.FreeTensor(a);
    out_.EnQue(b);
    b = out_.DeQue<float>();
    DataCopy(global(y), b, kCount);
    out_.FreeTensor(b);
    if (ends == 1) pipe_.Destroy();
    if (ends == 2) pipe_.DestroyWithoutPipeAll();
  }

 private:
  TPipe pipe_;
  TQue<TPosition::VECIN, 1> in_;
  TQue<TPosition::VECOUT, 1> out_;
};

extern "C" __global__ __aicore__ void steps(GM_ADDR x, GM_ADDR y, uint32_t many, uint32_t ends) {
  for (uint32_t i = 0; i < many; i++) {
    Step step;
    step.run(i == 0 ? x : y, y, ends);
  }
}

// The first one is still there when the second one begins.
extern "C" __global__ __aicore__ void together(GM_ADDR x, GM_ADDR y) {
  Step first, second;
  first.run(x, y, 0);
  second.run(y, y, 0);
}

// The second one begins with the whole mask and without an atomic operation.
extern "C" __global__ __aicore__ void afresh(GM_ADDR x, GM_ADDR y) {
  {
    TPipe pipe;
    SetAtomicAdd<float>();
    SetMaskCount();
    SetVectorMask<float, MaskMode::COUNTER>(0, 8);
  }
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, kCount * sizeof(float));
  auto a = buffer.Get<float>();
  DataCopy(a, global(x), kCount);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Adds<float, false>(a, a, 1.0f, MASK_PLACEHOLDER, kCount / 64, {1, 1, 8, 8});
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(global(y), a, kCount);
}

// From GM to L1 by a queue, and back; on a vector core, where L1 is its cube core's, it is refused.
template <bool cube>
__aicore__ inline void through_l1(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TSCM<TPosition::GM, 1> queue;
  pipe.InitBuffer(queue, 2, kCount * sizeof(float));
  auto a = queue.AllocTensor<float>();
  DataCopy(a, global(x), kCount);
  queue.EnQue(a);
  a = queue.DeQue<float>();
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  DataCopy(global(y), a, kCount);
  queue.FreeTensor(a);
}
extern "C" __global__ __aicore__ __cube__ void scm(GM_ADDR x, GM_ADDR y) { through_l1<true>(x, y); }
extern "C" __global__ __aicore__ __vector__ void scm_of_a_vector_core(GM_ADDR x, GM_ADDR y) { through_l1<false>(x, y); }

// A cube core's TPipes raise the flags of the matrix unit, each its own; `taken`: the first one's are taken.
extern "C" __global__ __aicore__ __cube__ void matrix_flags(GM_ADDR x, GM_ADDR y, uint32_t taken) {
  for (int i = 0; i < 3; i++) {
    TPipe pipe;
    TQue<TPosition::A1, 1> queue;
    pipe.InitBuffer(queue, 1, 300 * 1024);
    auto a = queue.AllocTensor<float>();
    DataCopy(a, global(x), kCount);
    if (taken == 0) continue;
    for (int id = 0; id < 3; id++) WaitFlag<HardEvent::M_MTE1>(id);
  }
}

// The kernel has raised a flag of M_MTE1 by number before it makes a TPipe, whose own three are beside it. `ends`: 1
// Destroy takes the TPipe's down, 2 the kernel's end does; `waits`: how often the kernel waits for its flag.
extern "C" __global__ __aicore__ __cube__ void late_pipe(GM_ADDR x, GM_ADDR y, uint32_t ends, uint32_t waits) {
  SetFlag<HardEvent::M_MTE1>(0);
  TPipe pipe;
  TQue<TPosition::A1, 1> queue;
  pipe.InitBuffer(queue, 1, 1024);
  auto a = queue.AllocTensor<float>();
  DataCopy(a, global(x), 256);
  if (ends == 1) pipe.Destroy();
  for (uint32_t i = 0; i < waits; i++) WaitFlag<HardEvent::M_MTE1>(0);
}
