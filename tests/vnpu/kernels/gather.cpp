// params: call, dtype (0 32-bit, 1 16-bit), see the cases; the second operand lies 32 KiB behind the first.
#include "api_kernel.h"

constexpr uint32_t kSecond = 32768;

template <typename T>
__aicore__ inline void call(Params p) {
  LocalTensor<T> d = output<T>(), s = input<T>();
  LocalTensor<uint32_t> offsets = input<uint32_t>(kSecond);
  uint64_t bits[2] = {p.as_u64(9), p.as_u64(11)}, kept = 0;
  GatherMaskParams params{static_cast<uint8_t>(p[5]), static_cast<uint16_t>(p[3]), static_cast<uint16_t>(p[6]),
                          static_cast<uint8_t>(p[7])};
  using U = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  switch (p[0]) {
    case 0:  // base, count
      return Gather(d, s, offsets, p[2], p[8]);
    case 1:  // base, repeat, dst stride, mask
      return Gather(d, s, offsets, p[2], static_cast<uint64_t>(p[8]), p[3], p[4]);
    case 2:
      return Gather(d, s, offsets, p[2], bits, p[3], p[4]);
    case 3:  // repeat, dst block stride, dst repeat stride
      return Gatherb(output<U>(), input<U>(), offsets, p[3], {static_cast<uint8_t>(p[5]), static_cast<uint8_t>(p[4])});
    case 4:  // fixed pattern, counter mode, mask
      GatherMask(d, s, static_cast<uint8_t>(p[2]), bool(p[4]), p[8], params, kept);
      break;
    case 5:
      GatherMask(d, s, input<U>(kSecond), bool(p[4]), p[8], params, kept);
      break;
    case 6:  // in place
      GatherMask(s, s, static_cast<uint8_t>(p[2]), bool(p[4]), p[8], params, kept);
      PipeBarrier<PIPE_ALL>();
      DataCopy(d, s, 128);
      break;
    case 7:  // count; in place
      Gather(s, s, offsets, 0, p[8]);
      PipeBarrier<PIPE_ALL>();
      DataCopy(d, s, 512);
      break;
  }
  PipeBarrier<PIPE_ALL>();
  output<uint32_t>(16384).SetValue(0, static_cast<uint32_t>(kept));
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) { p[1] ? call<half>(p) : call<float>(p); });
}
