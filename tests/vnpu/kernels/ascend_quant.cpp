// AscendQuant, ReduceMean, ReduceAny, ReduceAll, ReduceXorSum, Digamma. params: call, type, then per call; see the
// cases.
#include "api_kernel.h"

namespace {
constexpr uint32_t kScales = 40960, kOffsets = 45056;  // bytes into the input
constexpr AscendQuantConfig kFixed = {64, 32, 32, 128};

template <typename T>
__aicore__ inline void quant(Params p) {  // form, scales, count, bytes of room, sizes of the tensors
  LocalTensor<int8_t> d = output<int8_t>();
  LocalTensor<T> s(TPosition::VECCALC, kInput, p[6]);
  LocalTensor<T> scale(TPosition::VECCALC, kInput + kScales, p[3]), offset(TPosition::VECCALC, kInput + kOffsets, p[3]);
  LocalTensor<uint8_t> room(TPosition::VECCALC, kWork, p[5]);
  const float a = p.as_float(7), b = p.as_float(8);
  const T one = static_cast<T>(b);
  const uint32_t scales = p[3], count = p[4];
  switch (p[2]) {
    case 0:
      return p[5] ? AscendQuant(d, s, room, a, b, count) : AscendQuant(d, s, a, b, count);
    case 1:
      return p[5] ? AscendQuant<T>(d, s, room, a, b) : AscendQuant<T>(d, s, a, b);
    case 2:
      return p[5] ? AscendQuant(d, s, room, scale, one, scales, count) : AscendQuant(d, s, scale, one, scales, count);
    case 3:
      return p[5] ? AscendQuant(d, s, room, scale, one) : AscendQuant(d, s, scale, one);
    case 4:
      return p[5] ? AscendQuant(d, s, room, scale, offset, scales, scales, count)
                  : AscendQuant(d, s, scale, offset, scales, scales, count);
    case 5:
      return p[5] ? AscendQuant(d, s, room, scale, offset) : AscendQuant(d, s, scale, offset);
    case 6:
      return AscendQuant<T, false, kFixed>(d, s, room, scale, offset, 7, 7, 1);
    case 7:
      return AscendQuant(d, s, room, scale, offset, scales, scales + 1, count);
  }
}

template <typename T, typename Axis>
__aicore__ inline void reduce(Params p) {  // which, rows, columns, room: 0 none, 1 given, 2 the source's; bytes; padded
  LocalTensor<T> d = output<T>(), s = input<T>();
  LocalTensor<uint8_t> w(TPosition::VECCALC, kWork, p[6]);
  uint32_t shape[2] = {uint32_t(p[3]), uint32_t(p[4])};
  const bool padded = p[7] == 0;
  if constexpr (sizeof(T) == 4) {
    if (p[2] == 0 && p[5] == 0) return ReduceMean<T, Axis>(d, s, shape, padded);
    if (p[2] == 0 && p[5] == 1) return ReduceMean<T, Axis>(d, s, w, shape, padded);
    if (p[2] == 0) return ReduceMean<T, Axis, true>(d, s, w, shape, padded);
  }
  if (p[2] == 1 && p[5] == 0) return ReduceAny<T, Axis>(d, s, shape, padded);
  if (p[2] == 1 && p[5] == 1) return ReduceAny<T, Axis>(d, s, w, shape, padded);
  if (p[2] == 1) return ReduceAny<T, Axis, true>(d, s, w, shape, padded);
  if (p[5] == 0) return ReduceAll<T, Axis>(d, s, shape, padded);
  if (p[5] == 1) return ReduceAll<T, Axis>(d, s, w, shape, padded);
  return ReduceAll<T, Axis, true>(d, s, w, shape, padded);
}
}  // namespace

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  TPipe pipe;  // what APIs take without a temporary buffer lies behind input and output
  TBuf<TPosition::VECCALC> both;
  pipe.InitBuffer(both, kWork);
  run_api(in, out, params, bytes, [](Params p) {
    switch (p[0]) {
      case 0:
        return p[1] ? quant<half>(p) : quant<float>(p);
      case 1:
        return p[1] ? reduce<uint8_t, Pattern::Reduce::AR>(p) : reduce<float, Pattern::Reduce::AR>(p);
      case 2:
        return p[1] ? reduce<uint8_t, Pattern::Reduce::RA>(p) : reduce<float, Pattern::Reduce::RA>(p);
      case 3: {  // count, room: 0 none, 1 given, 2 the source's; bytes
        LocalTensor<int16_t> d = output<int16_t>(), a = input<int16_t>(), b = input<int16_t>(kScales);
        LocalTensor<uint8_t> w(TPosition::VECCALC, kWork, p[4]);
        if (p[3] == 0) return ReduceXorSum<int16_t>(d, a, b, p[2]);
        if (p[3] == 1) return ReduceXorSum<int16_t>(d, a, b, w, p[2]);
        return ReduceXorSum<int16_t, true>(d, a, b, w, p[2]);
      }
      case 5: {  // operation, along the last axis; what comes next takes the result, no barrier in between
        LocalTensor<float> d = output<float>(), x = input<float>();
        LocalTensor<uint8_t> w = work<uint8_t>();
        uint32_t shape[2] = {8, 8};
        if (p[1] == 0 && p[2]) ReduceSum<float, Pattern::Reduce::AR>(d, x, w, shape, true);
        if (p[1] == 0 && !p[2]) ReduceSum<float, Pattern::Reduce::RA>(d, x, w, shape, true);
        if (p[1] == 1 && p[2]) ReduceMax<float, Pattern::Reduce::AR>(d, x, w, shape, true);
        if (p[1] == 1 && !p[2]) ReduceMax<float, Pattern::Reduce::RA>(d, x, w, shape, true);
        if (p[1] == 2 && p[2]) ReduceProd<float, Pattern::Reduce::AR>(d, x, w, shape, true);
        if (p[1] == 2 && !p[2]) ReduceProd<float, Pattern::Reduce::RA>(d, x, w, shape, true);
        if (p[1] == 3 && p[2]) ReduceMean<float, Pattern::Reduce::AR>(d, x, w, shape, true);
        if (p[1] == 3 && !p[2]) ReduceMean<float, Pattern::Reduce::RA>(d, x, w, shape, true);
        Adds<float, false>(d, d, 1.0f, MASK_PLACEHOLDER, 1, UnaryRepeatParams());  // with the mask that is left
        return;
      }
      case 4: {  // count, with room
        LocalTensor<uint8_t> w = work<uint8_t>();
        if (p[1] == 0 && p[3]) return Digamma<float>(output<float>(), input<float>(), w, p[2]);
        if (p[1] == 0) return Digamma<float>(output<float>(), input<float>(), p[2]);
        if (p[3]) return Digamma<half>(output<half>(), input<half>(), w, p[2]);
        return Digamma<half, true>(output<half>(), input<half>(), p[2]);
      }
    }
  });
}
