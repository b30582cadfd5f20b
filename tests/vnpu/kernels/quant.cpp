// params: form, m, n, calCount, with a temporary buffer of so many bytes, several rows; the scales (a scalar: the
// first) lie at byte 49152 of the input
#include "api_kernel.h"

constexpr uint32_t kScales = 49152;

template <typename D, typename S, DeQuantMode MODE>
__aicore__ inline void rows(Params p) {
  LocalTensor<D> d = output<D>();
  LocalTensor<int32_t> s = input<int32_t>();
  const DequantParams shape{uint32_t(p[1]), uint32_t(p[2]), uint32_t(p[3])};
  if (p[4] == 0) return AscendDequant<D, S, MODE>(d, s, input<S>(kScales), shape);
  AscendDequant<D, S, MODE>(d, s, input<S>(kScales), LocalTensor<uint8_t>(TPosition::VECCALC, kWork, p[4]), shape);
}

template <typename D>
__aicore__ inline void one(Params p) {
  const float scale = input<float>(kScales).GetValue(0);
  const uint32_t m = p[1], n = p[2], count = p[3];
  if (p[4] == 0) return AscendDequant(output<D>(), input<int32_t>(), scale, {m, n, count});
  AscendDequant(output<D>(), input<int32_t>(), scale, work<uint8_t>(), {m, n, count});
}

template <DeQuantMode MODE>
__aicore__ inline void call(Params p) {
  switch (p[0]) {
    case 0:
      return rows<float, float, MODE>(p);
    case 1:
      return rows<float, bfloat16_t, MODE>(p);
    case 2:
      return rows<bfloat16_t, float, MODE>(p);
    case 3:
      return rows<bfloat16_t, bfloat16_t, MODE>(p);
    case 4:
      return rows<half, uint64_t, MODE>(p);
    case 5:
      return one<float>(p);
    case 6:
      return one<bfloat16_t>(p);
  }
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) {
    p[5] ? call<DeQuantMode::DEQUANT_WITH_MULTI_ROW>(p) : call<DeQuantMode::DEQUANT_WITH_SINGLE_ROW>(p);
  });
}
