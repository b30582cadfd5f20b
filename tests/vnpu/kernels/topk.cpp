// params: type (0 float, 1 half), rows, inner, n, k, form, fields of the tiling (its order). Bits of the form: 1
// indices given, 2 rows that don't count, 4 Small mode, 8 the smallest, 16 without temporary memory of the kernel's, 32
// values are asked for by the vector unit's next instruction without a barrier, 64 with one.
#include "api_kernel.h"

constexpr uint32_t kIndices = 49152, kFinished = 61440, kOutIndices = 32768;

template <typename T, bool given, bool finish, TopKMode mode>
__aicore__ inline void call(Params p) {
  TopkTiling tiling;
  int32_t* field = reinterpret_cast<int32_t*>(&tiling);
  for (int i = 0; i < 18; i++) field[i] = p[6 + i];
  TopKInfo info;
  info.outter = p[1];
  info.inner = p[2];
  info.n = p[3];
  if (mode == TopKMode::TOPK_NSMALL) {  // what lies behind the fields that fit in the parameters
    tiling.topkMrgSrc1MaskSizeOffset = p[10];
    tiling.topkNSmallSrcIndexOffset = p[11];
  }
  LocalTensor<bool> finished = input<uint8_t>(kFinished).template ReinterpretCast<bool>();
  const LocalTensor<T> values = output<T>();
  if (p[5] & 16) {
    TPipe pipe;  // what is left is behind input and output
    TBuf<> taken;
    pipe.InitBuffer(taken, kWork);
    TopK<T, given, finish, false, mode>(values, output<int32_t>(kOutIndices), input<T>(), input<int32_t>(kIndices),
                                        finished, p[4], tiling, info, (p[5] & 8) == 0);
  } else {
    TopK<T, given, finish, false, mode>(values, output<int32_t>(kOutIndices), input<T>(), input<int32_t>(kIndices),
                                        finished, work<uint8_t>(), p[4], tiling, info, (p[5] & 8) == 0);
  }
  if (p[5] & 64) PipeBarrier<PIPE_V>();
  if (p[5] & 96) Adds(values, values, static_cast<T>(1), 8);
}

template <typename T>
__aicore__ inline void form(Params p) {
  switch (p[5] & 7) {
    case 0:
      return call<T, false, false, TopKMode::TOPK_NORMAL>(p);
    case 1:
      return call<T, true, false, TopKMode::TOPK_NORMAL>(p);
    case 2:
      return call<T, false, true, TopKMode::TOPK_NORMAL>(p);
    case 3:
      return call<T, true, true, TopKMode::TOPK_NORMAL>(p);
    case 4:
      return call<T, false, false, TopKMode::TOPK_NSMALL>(p);
    case 5:
      return call<T, true, false, TopKMode::TOPK_NSMALL>(p);
  }
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) { p[0] == 0 ? form<float>(p) : form<half>(p); });
}
