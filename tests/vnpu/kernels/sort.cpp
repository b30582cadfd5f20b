// params: call, dtype, repeat, valid lists, stop when exhausted, list lengths (4), list offsets in records (4);
// indices (or nothing) lie 32 KiB behind the scores.
#include "api_kernel.h"

constexpr uint32_t kSecond = 32768;

template <typename T>
__aicore__ inline void call(Params p) {
  LocalTensor<T> d = output<T>(), s = input<T>(), w = work<T>();
  LocalTensor<uint32_t> indices = input<uint32_t>(kSecond);
  uint16_t lengths[4] = {uint16_t(p[5]), uint16_t(p[6]), uint16_t(p[7]), uint16_t(p[8])};
  MrgSortSrcList<T> lists(s[GetSortOffset<T>(p[9])], s[GetSortOffset<T>(p[10])], s[GetSortOffset<T>(p[11])],
                          s[GetSortOffset<T>(p[12])]);
  uint32_t taken[4] = {0, 0, 0, 0};
  switch (p[0]) {
    case 0:
      return Sort32(d, s, indices, p[2]);
    case 1:
      return MrgSort(d, lists, MrgSort4Info(lengths, bool(p[4]), p[3], p[2]));
    case 2:
      if (p[4])
        MrgSort<T, true>(d, lists, lengths, taken, p[3], p[2]);
      else
        MrgSort<T>(d, lists, lengths, taken, p[3], p[2]);
      PipeBarrier<PIPE_ALL>();
      for (int i = 0; i < 4; i++) output<uint32_t>(61440).SetValue(i, taken[i]);
      return;
    case 3: {
      LocalTensor<T> concat;
      Concat(concat, s, w, p[2]);
      Sort<T, true>(d, concat, indices, w, p[2]);
      return;
    }
    case 4: {
      Sort<T, true>(w, s, indices, d, p[2]);
      PipeBarrier<PIPE_V>();
      Extract(d, output<uint32_t>(kSecond), w, p[2]);
      return;
    }
  }
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) { p[1] ? call<half>(p) : call<float>(p); });
}
