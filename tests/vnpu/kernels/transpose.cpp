// params: call, dtype, repeat, dst stride, src stride, dst half, src half, address form, n, c, h, w, spacing of the
// source rows and of the destination rows in bytes
#include "api_kernel.h"

template <typename T>
__aicore__ inline void rows(Params p) {
  LocalTensor<T> d = output<T>(), s = input<T>();
  TransDataTo5HDParams params(p[5] != 0, p[6] != 0, p[2], p[3], p[4]);
  uint64_t dst[16], src[16];
  LocalTensor<T> dst_list[16], src_list[16];
  uint32_t src_step = p[12] / sizeof(T), dst_step = p[13] / sizeof(T);
  for (int i = 0; i < 16; i++) {
    dst_list[i] = d[i * dst_step];
    src_list[i] = s[i * src_step];
    dst[i] = reinterpret_cast<uint64_t>(dst_list[i].GetPhyAddr());
    src[i] = reinterpret_cast<uint64_t>(src_list[i].GetPhyAddr());
  }
  if (p[7] == 0) return TransDataTo5HD<T>(dst, src, params);
  if (p[7] == 1) return TransDataTo5HD<T>(dst_list, src_list, params);
  LocalTensor<uint64_t> to = work<uint64_t>(), from = work<uint64_t>(256);
  for (int i = 0; i < 16; i++) {
    to.SetValue(i, dst[i]);
    from.SetValue(i, src[i]);
  }
  PipeBarrier<PIPE_ALL>();
  TransDataTo5HD<T>(to, from, params);
}

template <typename T>
__aicore__ inline void channels(Params p) {
  TransposeParamsExt params(p[8], p[9], p[10], p[11],
                            p[0] == 2 ? TransposeType::TRANSPOSE_NCHW2NHWC : TransposeType::TRANSPOSE_NHWC2NCHW);
  Transpose(output<T>(), input<T>(), work<uint8_t>(), params);
}

template <typename T>
__aicore__ inline void call(Params p) {
  if (p[0] == 0) return rows<T>(p);
  if (p[0] >= 2) return channels<T>(p);
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) {
    if (p[0] == 1) return Transpose(output<half>(), input<half>());
    if (p[0] == 4) {  // by address registers
      uint64_t a[4][8];
      for (int i = 0; i < 16; i++) {
        a[i / 8][i % 8] = reinterpret_cast<uint64_t>(output<half>(i * 32).GetPhyAddr());
        a[2 + i / 8][i % 8] = reinterpret_cast<uint64_t>(input<half>(i * 32).GetPhyAddr());
      }
      set_va_reg_sb(VA0, a[0]);
      set_va_reg_sb(VA1, a[1]);
      set_va_reg_sb(VA2, a[2]);
      set_va_reg_sb(VA3, a[3]);
      return scatter_vnchwconv_b16(VA0, VA2, p[2], p[3], p[4]);
    }
    switch (p[1]) {
      case 1:
        return call<uint8_t>(p);
      case 2:
        return call<half>(p);
      default:
        return call<float>(p);
    }
  });
}
