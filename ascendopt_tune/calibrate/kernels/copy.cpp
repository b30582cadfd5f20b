// Copies between GM and UB. Every block makes `times` of them, `step` bytes further each and from its first byte again
// after `span` bytes; block b begins at byte b * `each`. A copy has `count` pieces of `bytes` bytes, `gap` bytes
// between them in GM. Bits of `how`: 1 past L2, 2 the scalar unit waits for each copy, 4 pieces are filled up with a
// value.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kPastL2 = 1, kWait = 2, kFilled = 4;

struct Walk {
  __aicore__ Walk(GM_ADDR data, uint32_t span, uint32_t step, uint64_t each, uint32_t how)
      : span_(span / 2), step_(step / 2) {
    gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(data) + GetBlockIdx() * (each / 2));
    if (how & kPastL2) gm.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
  }
  __aicore__ GlobalTensor<half> next() {
    const uint32_t now = at_;
    at_ = at_ + step_ < span_ ? at_ + step_ : 0;
    return gm[now];
  }
  GlobalTensor<half> gm;
  uint32_t span_, step_, at_ = 0;  // in elements
};

extern "C" __global__ __aicore__ void copy_in(GM_ADDR data, uint32_t times, uint32_t count, uint32_t bytes,
                                              uint32_t gap, uint32_t step, uint32_t span, uint64_t each, uint32_t how) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  Walk walk(data, span, step, each, how);
  LocalTensor<half> ub(TPosition::VECIN, 0, 65536);
  const DataCopyExtParams pieces(static_cast<uint16_t>(count), bytes, gap, 0, 0);
  const uint8_t fill = how & kFilled ? static_cast<uint8_t>((32 - bytes % 32) / 2 % 16) : 0;  // elements
  const DataCopyPadExtParams<half> pad(how & kFilled, 0, fill, 0);
  for (uint32_t i = 0; i < times; i++) {
    DataCopyPad(ub, walk.next(), pieces, pad);
    if (how & kWait) {
      SetFlag<HardEvent::MTE2_S>(0);
      WaitFlag<HardEvent::MTE2_S>(0);
    }
  }
  PipeBarrier<PIPE_ALL>();
}

extern "C" __global__ __aicore__ void copy_out(GM_ADDR data, uint32_t times, uint32_t count, uint32_t bytes,
                                               uint32_t gap, uint32_t step, uint32_t span, uint64_t each,
                                               uint32_t how) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  Walk walk(data, span, step, each, how);
  LocalTensor<half> ub(TPosition::VECOUT, 0, 65536);
  Duplicate(ub, static_cast<half>(1), 65536);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  const DataCopyExtParams pieces(static_cast<uint16_t>(count), bytes, 0, gap, 0);
  for (uint32_t i = 0; i < times; i++) {
    DataCopyPad(walk.next(), ub, pieces);
    if (how & kWait) {
      SetFlag<HardEvent::MTE3_S>(0);
      WaitFlag<HardEvent::MTE3_S>(0);
    }
  }
  PipeBarrier<PIPE_ALL>();
}

// Copies in and out in turn: each buffer of two goes out when it has come in, and in again when it has gone out.
extern "C" __global__ __aicore__ void copy_through(GM_ADDR data, GM_ADDR to, uint32_t times, uint32_t bytes,
                                                   uint32_t span, uint64_t each, uint32_t how) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  Walk from(data, span, bytes, each, how), into(to, span, bytes, each, how);
  const DataCopyExtParams pieces(1, bytes, 0, 0, 0);
  const DataCopyPadExtParams<half> pad(false, 0, 0, 0);
  for (uint32_t i = 0; i < times; i++) {
    const int32_t id = static_cast<int32_t>(i % 2);
    LocalTensor<half> ub(TPosition::VECIN, i % 2 * 65536, 32768);
    if (i >= 2) WaitFlag<HardEvent::MTE3_MTE2>(id);
    DataCopyPad(ub, from.next(), pieces, pad);
    SetFlag<HardEvent::MTE2_MTE3>(id);
    WaitFlag<HardEvent::MTE2_MTE3>(id);
    DataCopyPad(into.next(), ub, pieces);
    if (i + 2 < times) SetFlag<HardEvent::MTE3_MTE2>(id);
  }
  PipeBarrier<PIPE_ALL>();
}
