// params: call, dtype, mask form (0 count, 1 bits), repeat, dst stride, src block stride, src repeat stride, order or
// calIndex, mask or count, mask bits (4 words)
#include "api_kernel.h"

template <typename T>
__aicore__ inline void call(Params p) {
  LocalTensor<T> d = output<T>(), s = input<T>(), w = work<T>();
  int32_t repeat = p[3], dst = p[4], blk = p[5], rep = p[6], n = p[8];
  uint64_t bits[2] = {p.as_u64(9), p.as_u64(11)};
  ReduceOrder order = static_cast<ReduceOrder>(p[7]);
  bool by_bits = p[2];
  switch (p[0]) {
#define REPEATS(CASE, NAME) \
  case CASE:                \
    return by_bits ? NAME(d, s, bits, repeat, dst, blk, rep, order) : NAME(d, s, n, repeat, dst, blk, rep, order)
#define BLOCKS(CASE, NAME) \
  case CASE:               \
    return by_bits ? NAME(d, s, repeat, bits, dst, blk, rep) : NAME(d, s, repeat, n, dst, blk, rep)
    case 0:
      return by_bits ? WholeReduceSum(d, s, bits, repeat, dst, blk, rep)
                     : WholeReduceSum(d, s, n, repeat, dst, blk, rep);
      REPEATS(1, WholeReduceMax);
      REPEATS(2, WholeReduceMin);
      BLOCKS(3, BlockReduceSum);
      BLOCKS(4, BlockReduceMax);
      BLOCKS(5, BlockReduceMin);
      BLOCKS(6, PairReduceSum);
    case 7:
      return RepeatReduceSum(d, s, repeat, n, 0, blk, dst, rep);
    case 8:
      return ReduceSum(d, s, w, n);
    case 9:
      return ReduceMax(d, s, w, n, bool(p[7]));
    case 10:
      return ReduceMin(d, s, w, n, bool(p[7]));
    case 11:
      return by_bits ? ReduceSum(d, s, w, bits, repeat, rep) : ReduceSum(d, s, w, n, repeat, rep);
    case 12:
      return by_bits ? ReduceMax(d, s, w, bits, repeat, rep, bool(p[7]))
                     : ReduceMax(d, s, w, n, repeat, rep, bool(p[7]));
    case 13:
      return by_bits ? ReduceMin(d, s, w, bits, repeat, rep, bool(p[7]))
                     : ReduceMin(d, s, w, n, repeat, rep, bool(p[7]));
    case 14: {  // registers after a maximum and an accumulating sum
      WholeReduceMax(w, s, n, repeat, 1, 1, 8);
      PipeBarrier<PIPE_ALL>();  // the scalar unit reads the register
      T value, index;
      GetReduceMaxMinCount<T>(value, index);
      ReduceSum(w, s, w, n);
      PipeBarrier<PIPE_ALL>();
      T sum = GetAccVal<T>();
      d.SetValue(0, value);
      d.SetValue(1, index);
      d.SetValue(2, sum);
      return;
    }
    case 15: {  // counter mode, mask set outside
      SetMaskCount();
      SetVectorMask<T, MaskMode::COUNTER>(0, n);
      WholeReduceSum<T, false>(d, s, MASK_PLACEHOLDER, 1, dst, blk, rep);
      SetMaskNorm();
      ResetMask();
      return;
    }
    case 19:  // the same with a mask that is given to the call
      SetMaskCount();
      WholeReduceSum(d, s, n, 1, dst, blk, rep);
      SetMaskNorm();
      return;
    case 16:
      return ReduceRepeat<ReduceType::MAX>(d, s, n, repeat, dst, blk, rep, order);
    case 17:
      return ReduceDataBlock<ReduceType::MIN>(d, s, n, repeat, dst, blk, rep);
    case 18:
      return ReducePairElem<ReduceType::SUM>(d, s, n, repeat, dst, blk, rep);
  }
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) { p[1] == 1 ? call<half>(p) : call<float>(p); });
}
