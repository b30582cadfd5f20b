// Rows of global memory become tiles in the Unified Buffer, and go out as they lie there.
#include "kernel_operator.h"
using namespace AscendC;

struct Rows {
  uint32_t rows, columns, pitch, high, step, waits;
};

template <typename T>
__aicore__ inline void tiles(GM_ADDR x, GM_ADDR y, const Rows& p) {
  GlobalTensor<T> from, to;
  from.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x));
  to.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(y));
  constexpr uint32_t c0 = 32 / sizeof(T);
  const uint32_t all = (p.columns + c0 - 1) / c0 * p.high * c0;
  LocalTensor<T> t(TPosition::VECIN, 0, all);
  LocalTensor<int16_t> words(TPosition::VECIN, 0, all * sizeof(T) / 2);
  Duplicate(words, int16_t(0), all * sizeof(T) / 2);
  if (p.waits) {
    SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
  }
  Nd2NzParams how{1,
                  static_cast<uint16_t>(p.rows),
                  static_cast<uint16_t>(p.columns),
                  0,
                  static_cast<uint16_t>(p.pitch),
                  static_cast<uint16_t>(p.high),
                  static_cast<uint16_t>(p.step),
                  0};
  DataCopy(t, from, how);
  SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  DataCopy(to, t, all);
}

extern "C" __global__ __vector__ void of_half(GM_ADDR x, GM_ADDR y, Rows p) { tiles<half>(x, y, p); }
extern "C" __global__ __vector__ void of_int8(GM_ADDR x, GM_ADDR y, Rows p) { tiles<int8_t>(x, y, p); }
extern "C" __global__ __vector__ void of_float(GM_ADDR x, GM_ADDR y, Rows p) { tiles<float>(x, y, p); }
