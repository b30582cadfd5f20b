// params: bytes of an element, kind, temporary memory (0: none of the kernel's), older name (1), then the tiling.
#include "api_kernel.h"

template <typename T>
__aicore__ inline void call(Params p) {
  ConfusionTransposeTiling tiling;
  uint32_t* field = reinterpret_cast<uint32_t*>(&tiling);
  for (int i = 0; i < 18; i++) field[i] = uint32_t(p[4 + i]);
  const auto kind = static_cast<TransposeType>(p[1]);
  if (p[3] != 0) return ConfusionTranspose(output<T>(), input<T>(), work<uint8_t>(), kind, tiling);
  if (p[2] != 0) return Transpose(output<T>(), input<T>(), work<uint8_t>(), kind, tiling);
  Transpose(output<T>(), input<T>(), kind, tiling);
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) { p[0] == 2 ? call<int16_t>(p) : call<float>(p); });
}
