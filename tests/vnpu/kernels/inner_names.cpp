// Names that CANN keeps for itself, or that its compiler knows without a header, and operators use.
#include "adv_api/kernel_tiling.h"
#include "kernel_operator.h"
using namespace AscendC;

__aicore__ inline void store(GM_ADDR y, const uint32_t* values, uint32_t count) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> room;
  pipe.InitBuffer(room, 256);
  LocalTensor<uint32_t> out = room.Get<uint32_t>();
  for (uint32_t i = 0; i < count; i++) out.SetValue(i, values[i]);
  GlobalTensor<uint32_t> target;
  target.SetGlobalBuffer((__gm__ uint32_t*)y);
  SetFlag<HardEvent::S_MTE3>(0);
  WaitFlag<HardEvent::S_MTE3>(0);
  DataCopyPad(target, out, {1, count * static_cast<uint32_t>(sizeof(uint32_t)), 0, 0, 0});
}

extern "C" __global__ __aicore__ void copied(GM_ADDR x, GM_ADDR y) {
  uint32_t from[19], to[20] = {};
  for (uint32_t i = 0; i < 19; i++) from[i] = 7 * i + 1;
  copy_data_align64((uint8_t*)to, (uint8_t*)from, sizeof(from));
  store(y, to, 20);
}

extern "C" __global__ __aicore__ void tiled(GM_ADDR x, GM_ADDR y, uint32_t rows, uint32_t columns, uint32_t bytes,
                                            uint32_t basic, uint32_t alone) {
  const SoftMaxTiling one =
      SoftMaxFlashV2TilingFunc({rows, columns, rows, columns}, 4, 4, bytes, true, basic, false, alone);
  const SoftMaxTiling other = SoftMaxFlashV2TilingFuncImpl(rows, columns, 4, 4, bytes / 4, true, basic, false, alone);
  const uint32_t values[] = {one.srcM,   one.reduceM,   one.splitM,   one.tailM,   one.rangeM,
                             other.srcM, other.reduceM, other.splitM, other.tailM, other.rangeM};
  store(y, values, 10);
}

template <int step>
struct Policy {
  uint32_t first = 5, second = first + step;
};

template <int step>
class Reader {
 public:
  static constexpr Policy<(step > 0)> policy;
  static constexpr uint32_t whole = 3;
  static constexpr uint32_t doubled(uint32_t x) { return 2 * x; }
};

extern "C" __global__ __aicore__ void constants(GM_ADDR x, GM_ADDR y) {
  static constexpr Policy<7> own;
  const uint32_t values[] = {Reader<1>::policy.first, Reader<1>::policy.second, Reader<1>::whole,
                             Reader<1>::doubled(own.second), GetffstMsg(2, SYNC_AIC_AIV_FLAG)};
  store(y, values, 5);
}
