// params: call, type, then per call; see the cases. Fields of tilings lie at byte 49152 of the input.
#include "api_kernel.h"

namespace {
constexpr uint32_t kFields = 49152;
constexpr TransDataConfig kConfigs[] = {{DataFormat::NCDHW, DataFormat::NDC1HWC0},
                                        {DataFormat::NDC1HWC0, DataFormat::NCDHW},
                                        {DataFormat::NCDHW, DataFormat::FRACTAL_Z_3D},
                                        {DataFormat::FRACTAL_Z_3D, DataFormat::NCDHW}};
constexpr TransDataConfig k0 = kConfigs[0], k1 = kConfigs[1], k2 = kConfigs[2], k3 = kConfigs[3];

template <typename Tiling>
__aicore__ inline Tiling fields() {
  Tiling tiling;
  for (uint32_t i = 0; i < sizeof(Tiling) / 4; i++)
    reinterpret_cast<uint32_t*>(&tiling)[i] = input<uint32_t>(kFields).GetValue(i);
  return tiling;
}

template <const TransDataConfig& config, typename T, typename From, typename To>
__aicore__ inline void trans_data(const From& from, const To& to, uint32_t room) {
  TransDataParams<From, To> params = {from, to};
  if (room == 0)
    TransData<config>(output<T>(), input<T>(), params);
  else
    TransData<config, T, From, To>(output<T>(), input<T>(), LocalTensor<uint8_t>(TPosition::VECCALC, kWork, room),
                                   params);
}

template <typename T>
__aicore__ inline void call(Params p) {
  switch (p[0]) {
    case 0: {  // left, right, value, bytes of room
      PadParams pad{uint16_t(p[2]), uint16_t(p[3]), p[4]};
      auto tiling = fields<tiling::PadTiling>();
      if (p[5] == 0) return Pad(output<T>(), input<T>(), pad, tiling);
      return Pad(output<T>(), input<T>(), pad, LocalTensor<uint8_t>(TPosition::VECCALC, kWork, p[5]), tiling);
    }
    case 1: {  // left, right, with room
      UnPadParams pad{uint16_t(p[2]), uint16_t(p[3])};
      auto tiling = fields<tiling::UnPadTiling>();
      LocalTensor<uint8_t> room = work<uint8_t>();
      if (p[4] == 0) return UnPad(output<T>(), input<T>(), pad, tiling);
      return UnPad(output<T>(), input<T>(), pad, room, tiling);
    }
    case 2: {  // first, step, count
      if constexpr (sizeof(T) == 4 && std::is_integral_v<T>)
        return Arange<T>(output<T>(), static_cast<T>(p[2]), static_cast<T>(p[3]), p[4]);
      else
        return Arange<T>(output<T>(), static_cast<T>(p.as_float(2)), static_cast<T>(p.as_float(3)), p[4]);
    }
    case 3: {  // which, n, c, d, h, w, bytes of room, tile
      if constexpr (sizeof(T) == 2) {
        const int32_t n = p[3], c = p[4], d = p[5], h = p[6], w = p[7], tile = p[9];
        const int32_t c1 = (c + 15) / 16, n1 = (n + 15) / 16;
        Layout plain = MakeLayout(MakeShape(n, c, d, h, w), MakeStride());
        Layout six = MakeLayout(MakeShape(n, d, c1, h, w, tile), MakeStride());
        Layout seven = MakeLayout(MakeShape(d, c1, h, w, n1, tile, 16), MakeStride());
        const uint32_t room = p[8];
        if (p[2] == 0) return trans_data<k0, T>(plain, six, room);
        if (p[2] == 1) return trans_data<k1, T>(six, plain, room);
        if (p[2] == 2) return trans_data<k2, T>(plain, seven, room);
        return trans_data<k3, T>(seven, plain, room);
      }
    }
  }
}
}  // namespace

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  TPipe pipe;  // what APIs take without a temporary buffer lies behind input and output
  TBuf<TPosition::VECCALC> both;
  pipe.InitBuffer(both, kWork);
  run_api(in, out, params, bytes, [](Params p) {
    switch (p[1]) {
      case 0:
        return call<float>(p);
      case 1:
        return call<half>(p);
      case 2:
        return call<int32_t>(p);
      case 3:
        return call<int16_t>(p);
    }
  });
}
