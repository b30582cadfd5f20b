// params: type (0 float, 1 half, 2 half with float sums), rows, columns, valid columns, form, temporary bytes (0: none
// given), bytes that the tiling is asked for. Bits of the form: 1 update, 2 an element for each row, 4 basic block,
// 8 the row maximum as well, 16 the tiling is another shape's, 32 and isn't looked at.
#include "api_kernel.h"

constexpr SoftmaxConfig kNarrow = {true, 0, 0, SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC};
constexpr SoftmaxConfig kUnchecked = {false, 0, 0, SoftmaxMode::SOFTMAX_NORMAL};

template <typename T, typename S, bool update, bool basic, const SoftmaxConfig& config>
__aicore__ inline void call(Params p) {
  SoftMaxShapeInfo shape{uint32_t(p[1]), uint32_t(p[2]), uint32_t(p[1]), uint32_t(p[3])};
  const bool narrow = config.mode == SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC;
  SoftMaxTiling tiling =
      SoftMaxFlashV2TilingFunc(shape, sizeof(T), sizeof(S), uint32_t(p[6]), update, basic, false, narrow);
  if (p[4] & 16) tiling.srcM++;
  auto d = output<T>(), s = input<T>(), shrunk = output<T>(40960);
  auto sum = output<S>(32768), max = output<S>(36864), in_sum = input<S>(32768), in_max = input<S>(40960);
  LocalTensor<uint8_t> w = work<uint8_t>();
  w.SetSize(uint32_t(p[5]));
  if constexpr (config.mode == SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC && std::is_same_v<T, S>) {
    if (p[4] & 8 && p[5])
      return SoftmaxFlashV2<T, update, false, basic, false, config>(d, output<S>(45056), sum, max, s, shrunk, in_sum,
                                                                    in_max, w, tiling, shape);
    if (p[4] & 8)
      return SoftmaxFlashV2<T, update, false, basic, false, config>(d, output<S>(45056), sum, max, s, shrunk, in_sum,
                                                                    in_max, tiling, shape);
  }
  if (p[5])
    return SoftmaxFlashV2<T, update, false, basic, false, config>(d, sum, max, s, shrunk, in_sum, in_max, w, tiling,
                                                                  shape);
  SoftmaxFlashV2<T, update, false, basic, false, config>(d, sum, max, s, shrunk, in_sum, in_max, tiling, shape);
}

template <typename T, typename S>
__aicore__ inline void form(Params p) {
  if (p[4] & 32) return call<T, S, true, false, kUnchecked>(p);
  switch (p[4] & 7) {
    case 0:
      return call<T, S, false, false, SOFTMAX_DEFAULT_CFG>(p);
    case 1:
      return call<T, S, true, false, SOFTMAX_DEFAULT_CFG>(p);
    case 2:
      return call<T, S, false, false, kNarrow>(p);
    case 3:
      return call<T, S, true, false, kNarrow>(p);
    case 5:
      return call<T, S, true, true, SOFTMAX_DEFAULT_CFG>(p);
    case 7:
      return call<T, S, true, true, kNarrow>(p);
  }
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) {
    p[0] == 0 ? form<float, float>(p) : p[0] == 1 ? form<half, half>(p) : form<half, float>(p);
  });
}
