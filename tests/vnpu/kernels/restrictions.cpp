// One documented restriction by number: kept when `broken` is 0, broken when it is 1. x holds 64 KiB.
#include "kernel_operator.h"

using namespace AscendC;

namespace {
GlobalTensor<float> gm(GM_ADDR p) {
  GlobalTensor<float> g;
  g.SetGlobalBuffer(reinterpret_cast<float*>(p));
  return g;
}
template <int count>
void buffers(TPipe& pipe) {
  for (int i = 0; i < count; i++) {
    TBuf<TPosition::VECCALC> b;
    pipe.InitBuffer(b, 32);
  }
}
constexpr TQueConfig kTwoBuffers{false, false, false, 0, 2};
}  // namespace

extern "C" __global__ __aicore__ void restriction(GM_ADDR x, uint32_t number, uint32_t broken) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 4096), c(TPosition::VECCALC, 65536, 4096);
  TPipe pipe;
  uint32_t bad = broken;
  switch (number) {
    case 0:  // operands start at 32-byte blocks
      return Add(c, a[bad ? 4 : 8], a, 64);
    case 3:  // in one repeat source and destination are the same or apart
      return Add(a[bad ? 8 : 64], a, c, 64, 1, {1, 1, 1, 8, 8, 8});
    case 4:  // no repeat reads what an earlier one wrote
      return Adds(a[bad ? 64 : 128], a, 1.0f, 64, 2, {1, 1, 8, 8});
    case 5:  // but sums over repeats may (of these types and functions)
      return bad ? Div(c, a, c, 64, 4, {1, 1, 1, 0, 8, 0}) : Add(c, a, c, 64, 4, {1, 1, 1, 0, 8, 0});
    case 6:  // 64 buffers a kernel
      return bad ? buffers<65>(pipe) : buffers<64>(pipe);
    case 7: {  // 8 buffers a queue
      TQue<TPosition::VECIN, 1> que;
      pipe.InitBuffer(que, bad ? 9 : 8, 32);
      return;
    }
    case 8: {  // a queue is at most 8 deep
      TQue<TPosition::VECIN, 8> que;
      TQue<TPosition::VECIN, 9> deep;
      bad ? pipe.InitBuffer(deep, 2, 32) : pipe.InitBuffer(que, 2, 32);
      return;
    }
    case 9:  // at most 4095 pieces in a copy
      return DataCopy(a, gm(x), {static_cast<uint16_t>(bad ? 4096 : 2000), 1, 0, 0});
    case 10:  // at most 32 bytes of padding on a side
      return DataCopyPad(a, gm(x), {1, 4, 0, 0, 0}, {true, 0, static_cast<uint8_t>(bad ? 9 : 8), 0.0f});
    case 11:  // 8 event ids
      SetFlag<HardEvent::MTE2_V>(bad ? 8 : 7);
      return WaitFlag<HardEvent::MTE2_V>(bad ? 8 : 7);
    case 12: {  // the Unified Buffer ends
      TBuf<TPosition::VECCALC> big;
      pipe.InitBuffer(big, bad ? 200 * 1024 : 100 * 1024);
      auto t = big.Get<float>();
      return Adds(t[t.GetSize() - 64], t, 1.0f, 64);
    }
    case 13: {  // events that are handed out
      for (uint32_t i = 0; i < (bad ? 9 : 8); i++) pipe.AllocEventID<HardEvent::V_S>();
      return;
    }
    case 14:  // a barrier over all cores needs all of them at once
      return SyncAll();
    case 15: {  // gather offsets are multiples of the element
      auto o = c.ReinterpretCast<uint32_t>();
      for (uint32_t i = 0; i < 8; i++) o.SetValue(i, i * 4 + bad);
      SetFlag<HardEvent::S_V>(0);
      WaitFlag<HardEvent::S_V>(0);
      return Gather(c[64], a, o, 0, 8);
    }
    case 16: {  // tensors of one queue only go back to it
      TQue<TPosition::VECIN, 1> que;
      pipe.InitBuffer(que, 1, 1024);
      auto t = que.AllocTensor<float>();
      if (bad) return que.FreeTensor(a);
      return que.FreeTensor(t);
    }
    case 17: {  // a queue has the buffers that its configuration says
      TQue<TPosition::VECIN, 1, &kTwoBuffers> que;
      pipe.InitBuffer(que, bad ? 3 : 2, 32);
      return;
    }
    case 18: {  // a queue holds as many tensors as it is deep
      TQue<TPosition::VECIN, 1> que;
      pipe.InitBuffer(que, 2, 32);
      auto first = que.AllocTensor<float>(), second = que.AllocTensor<float>();
      que.EnQue(first);
      if (!bad) que.DeQue<float>();
      que.EnQue(second);
      que.DeQue<float>();
      return;
    }
    case 19: {  // padding of elements of 8 bytes is zeros
      GlobalTensor<int64_t> words;
      words.SetGlobalBuffer((__gm__ int64_t*)x);
      return DataCopyPad(a.ReinterpretCast<int64_t>(), words, {1, 8, 0, 0, 0}, {true, 0, 3, bad ? 1 : 0});
    }
    case 20:  // cube cores have to be there for all cores to meet
      return bad ? SyncAll<false>() : SyncAll<true>();
    case 21:    // counters of all cores are zeros
    case 22:    // and each has its 32 bytes
    case 23: {  // all cores meet
      GlobalTensor<int32_t> counters;
      counters.SetGlobalBuffer((__gm__ int32_t*)x);
      LocalTensor<int32_t> local(TPosition::VECCALC, number == 22 && bad ? 196608 - 32 : 0, 16);
      if (number == 21 && bad) counters.SetValue(8, 1);
      return SyncAll(counters, local, number == 23 && bad ? 3 : 2);
    }
    case 24:  // a count ends its last repeat: what lies behind may be a source
      SetMaskCount();
      SetVectorMask<float, MaskMode::COUNTER>(0, bad ? 88 : 72);
      FusedMulAdd<float, false>(a, c, a[80], MASK_PLACEHOLDER, 1, {1, 1, 0, 8, 8, 0});
      SetMaskNorm();
      return ResetMask();
  }
}
