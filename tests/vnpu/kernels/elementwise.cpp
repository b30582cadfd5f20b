// params: 0 call, 1 dtype, 2 form, 3 count or mask, 4 repeat, 5..7 block strides (dst, src0, src1), 8..10 repeat
// strides, 11 mode (rounding, comparison, selection), 12 scalar bits, 13..16 mask bits, 17 dst byte offset, 18 second
// dtype (Cast), 19 source is the destination shifted by that many bytes - 1 (0: the input)
// The second source starts at byte 32768 of the input, masks of Select at byte 61440.
#include "api_kernel.h"

constexpr uint32_t kSecond = 32768, kSelection = 61440;

enum Form { kCount, kMask, kBits, kRegister, kCounterRegister, kCounterInside };

template <typename T>
__aicore__ inline T scalar_of(Params p) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(p[12]);
  else
    return static_cast<T>(p.as_float(12));
}

// NAME(arguments..., mask operands) in each form; TYPES: its template arguments before isSetMask, in parentheses.
#define UNPACK(...) __VA_ARGS__
#define MASKED_FORMS(T, REPEAT_PARAMS, NAME, TYPES, ...)                             \
  case kMask:                                                                        \
    NAME(__VA_ARGS__, static_cast<uint64_t>(p[3]), repeat, REPEAT_PARAMS);           \
    return;                                                                          \
  case kBits:                                                                        \
    NAME(__VA_ARGS__, bits, repeat, REPEAT_PARAMS);                                  \
    return;                                                                          \
  case kRegister:                                                                    \
    SetVectorMask<T>(bits[1], bits[0]);                                              \
    NAME<UNPACK TYPES, false>(__VA_ARGS__, MASK_PLACEHOLDER, repeat, REPEAT_PARAMS); \
    ResetMask();                                                                     \
    return;                                                                          \
  case kCounterRegister:                                                             \
    SetMaskCount();                                                                  \
    SetVectorMask<T, MaskMode::COUNTER>(0, p[3]);                                    \
    NAME<UNPACK TYPES, false>(__VA_ARGS__, MASK_PLACEHOLDER, repeat, REPEAT_PARAMS); \
    SetMaskNorm();                                                                   \
    ResetMask();                                                                     \
    return;                                                                          \
  case kCounterInside: {                                                             \
    uint64_t counted[2] = {static_cast<uint64_t>(p[3]), 0};                          \
    SetMaskCount();                                                                  \
    NAME(__VA_ARGS__, counted, repeat, REPEAT_PARAMS);                               \
    SetMaskNorm();                                                                   \
    ResetMask();                                                                     \
    return;                                                                          \
  }
#define FORMS(T, REPEAT_PARAMS, NAME, TYPES, ...)              \
  switch (p[2]) {                                              \
    case kCount:                                               \
      NAME(__VA_ARGS__, p[3]);                                 \
      return;                                                  \
      MASKED_FORMS(T, REPEAT_PARAMS, NAME, TYPES, __VA_ARGS__) \
  }                                                            \
  return;

// Kernels take these functions as template arguments.
template <typename T, void (*function)(const LocalTensor<T>&, const LocalTensor<T>&, const int32_t&)>
__aicore__ inline void through_unary(const LocalTensor<T>& d, const LocalTensor<T>& s, int32_t n) {
  function(d, s, n);
}
template <typename T, void (*function)(const LocalTensor<T>&, const LocalTensor<T>&, const T&, const int32_t&)>
__aicore__ inline void through_scalar(const LocalTensor<T>& d, const LocalTensor<T>& s, const T& v, int32_t n) {
  function(d, s, v, n);
}
template <typename T,
          void (*function)(const LocalTensor<T>&, const LocalTensor<T>&, const LocalTensor<T>&, const int32_t&)>
__aicore__ inline void through_binary(const LocalTensor<T>& d, const LocalTensor<T>& s, const LocalTensor<T>& t,
                                      int32_t n) {
  function(d, s, t, n);
}

template <typename T>
__aicore__ inline void vector_call(Params p) {
  LocalTensor<T> d = output<T>(p[17]), s = p[19] ? output<T>(p[19] - 1) : input<T>(), t = input<T>(kSecond);
  uint64_t bits[2] = {p.as_u64(13), p.as_u64(15)};
  uint8_t repeat = static_cast<uint8_t>(p[4]);
  UnaryRepeatParams one(p[5], p[6], p[8], p[9]);
  BinaryRepeatParams two(p[5], p[6], p[7], p[8], p[9], p[10]);
  T v = scalar_of<T>(p);
  switch (p[0]) {
#define UNARY(CASE, NAME) \
  case CASE:              \
    FORMS(T, one, NAME, (T), d, s)
    UNARY(0, Exp)
    UNARY(1, Ln)
    UNARY(2, Abs)
    UNARY(3, Reciprocal)
    UNARY(4, Rsqrt)
    UNARY(5, Sqrt)
    UNARY(6, Relu)
    UNARY(7, Not)
#define SCALAR(CASE, NAME) \
  case CASE:               \
    FORMS(T, one, NAME, (T), d, s, v)
    SCALAR(10, Adds)
    SCALAR(11, Muls)
    SCALAR(12, Maxs)
    SCALAR(13, Mins)
    SCALAR(14, LeakyRelu)
    SCALAR(15, ShiftLeft)
    SCALAR(16, ShiftRight)
    case 17:
      FORMS(T, one, Axpy, (T, T), d, s, v)
    case 18:  // rounding right shift
      ShiftRight(d, s, v, static_cast<uint64_t>(p[3]), repeat, one, true);
      return;
#define BINARY(CASE, NAME) \
  case CASE:               \
    FORMS(T, two, NAME, (T), d, s, t)
      BINARY(20, Add)
      BINARY(21, Sub)
      BINARY(22, Mul)
      BINARY(23, Div)
      BINARY(24, Max)
      BINARY(25, Min)
      BINARY(26, And)
      BINARY(27, Or)
      BINARY(28, AddRelu)
      BINARY(29, SubRelu)
      BINARY(30, FusedMulAdd)
      BINARY(31, MulAddRelu)
    case 32:
      FORMS(T, two, MulAddDst, (T, T), d, s, t)
    case 33:
      return through_unary<T, Exp<T>>(d, s, p[3]);
    case 34:
      return through_scalar<T, Muls<T>>(d, s, v, p[3]);
    case 35:
      return through_binary<T, Add<T>>(d, s, t, p[3]);
    case 40:
      if (p[2] == kCount) Duplicate(d, v, p[3]);
      if (p[2] == kMask) Duplicate(d, v, static_cast<uint64_t>(p[3]), repeat, p[5], p[8]);
      if (p[2] == kBits) Duplicate(d, v, bits, repeat, p[5], p[8]);
      return;
    case 41:
      Brcb(d, s, repeat, {static_cast<uint16_t>(p[5]), static_cast<uint16_t>(p[8])});
      return;
    case 42:
      if (p[2] == kCount) CreateVecIndex(d, v, static_cast<uint32_t>(p[3]));
      if (p[2] == kMask) CreateVecIndex(d, v, static_cast<uint64_t>(p[3]), repeat, p[5], p[8]);
      if (p[2] == kBits) CreateVecIndex(d, v, bits, repeat, p[5], p[8]);
      return;
    case 43:
      ArithProgression(d, v, static_cast<T>(p[11]), p[3]);
      return;
    case 44: {
      CopyRepeatParams copy(p[5], p[6], p[8], p[9]);
      switch (p[2]) { MASKED_FORMS(T, copy, Copy, (T), d, s) }
      return;
    }
  }
}

template <typename T>
__aicore__ inline void compare_call(Params p) {
  LocalTensor<T> d = output<T>(p[17]), s = input<T>(), t = input<T>(kSecond);
  LocalTensor<uint8_t> result = output<uint8_t>(p[17]), selection = input<uint8_t>(kSelection);
  uint64_t bits[2] = {p.as_u64(13), p.as_u64(15)};
  uint8_t repeat = static_cast<uint8_t>(p[4]);
  UnaryRepeatParams one(p[5], p[6], p[8], p[9]);
  BinaryRepeatParams two(p[5], p[6], p[7], p[8], p[9], p[10]);
  T v = scalar_of<T>(p);
  CMPMODE compare = static_cast<CMPMODE>(p[11]);
  SELMODE select = static_cast<SELMODE>(p[11]);
  uint32_t n = p[3];
  uint64_t mask = p[3];
  switch (p[0]) {
    case 50:
      if (p[2] == kCount) Compare(result, s, t, compare, n);
      if (p[2] == kMask) Compare(result, s, t, compare, mask, repeat, two);
      if (p[2] == kBits) Compare(result, s, t, compare, bits, repeat, two);
      return;
    case 51:
      if (p[2] == kCount) CompareScalar(result, s, v, compare, n);
      if (p[2] == kMask) CompareScalar(result, s, v, compare, mask, repeat, one);
      if (p[2] == kBits) Compares(result, s, v, compare, bits, repeat, one);
      return;
    case 52:  // to the register and out again
      if (p[2] == kMask) Compare(s, t, compare, mask, two);
      if (p[2] == kBits) Compare(s, t, compare, bits, two);
      GetCmpMask(result);
      return;
    case 53:
      if (p[2] == kCount) Select(d, selection, s, t, select, n);
      if (p[2] == kMask) Select(d, selection, s, t, select, mask, repeat, two);
      if (p[2] == kBits) Select(d, selection, s, t, select, bits, repeat, two);
      return;
    case 54:
      if (p[2] == kCount) Select(d, selection, s, v, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
      if (p[2] == kMask) Select(d, selection, s, v, SELMODE::VSEL_TENSOR_SCALAR_MODE, mask, repeat, two);
      if (p[2] == kBits) Select(d, selection, s, v, SELMODE::VSEL_TENSOR_SCALAR_MODE, bits, repeat, two);
      return;
    case 55:  // masks in registers
      SetCmpMask(selection);
      PipeBarrier<PIPE_V>();
      SetVectorMask<T>(bits[1], bits[0]);
      Select<T, SELMODE::VSEL_CMPMASK_SPR>(d, s, t, repeat, two);
      ResetMask();
      return;
    case 56: {
      SelectWithBytesMaskShapeInfo info(p[4], p[3], p[5]);
      if (p[11])
        SelectWithBytesMask(d, v, s, input<uint8_t>(kSecond), work<uint8_t>(), info);
      else
        SelectWithBytesMask(d, s, v, input<uint8_t>(kSecond), work<uint8_t>(), info);
      return;
    }
  }
}

// Cast from U to T.
template <typename T, typename U>
__aicore__ inline void cast_call(Params p) {
  LocalTensor<T> d = output<T>();
  LocalTensor<U> s = p[19] ? output<U>(p[19] - 1) : input<U>();
  uint64_t bits[2] = {p.as_u64(13), p.as_u64(15)};
  uint8_t repeat = static_cast<uint8_t>(p[4]);
  UnaryRepeatParams one(p[5], p[6], p[8], p[9]);
  RoundMode mode = static_cast<RoundMode>(p[11]);
  if constexpr (std::is_same_v<U, int32_t> && std::is_same_v<T, half>) SetDeqScale(static_cast<half>(p.as_float(12)));
  switch (p[2]) {
    case kCount:
      Cast(d, s, mode, static_cast<uint32_t>(p[3]));
      return;
      MASKED_FORMS(T, one, Cast, (T, U), d, s, mode)
  }
}

__aicore__ inline void cast_calls(Params p) {
  switch (p[18]) {
#define CAST(CASE, SOURCE, DESTINATION) \
  case CASE:                            \
    return cast_call<DESTINATION, SOURCE>(p);
    CAST(0, int8_t, half)
    CAST(1, uint8_t, half)
    CAST(2, int16_t, half)
    CAST(3, int16_t, float)
    CAST(4, half, int8_t)
    CAST(5, half, uint8_t)
    CAST(6, half, int16_t)
    CAST(7, half, int32_t)
    CAST(8, half, float)
    CAST(9, bfloat16_t, int32_t)
    CAST(10, bfloat16_t, float)
    CAST(11, int32_t, int16_t)
    CAST(12, int32_t, half)
    CAST(13, int32_t, float)
    CAST(14, int32_t, int64_t)
    CAST(15, float, int16_t)
    CAST(16, float, half)
    CAST(17, float, bfloat16_t)
    CAST(18, float, int32_t)
    CAST(19, float, float)
    CAST(20, float, int64_t)
    CAST(21, int64_t, int32_t)
    CAST(22, int64_t, float)
    CAST(23, int4b_t, half)
    CAST(24, half, int4b_t)
    CAST(25, float, uint16_t)
  }
}

// Conversions with arithmetic.
__aicore__ inline void fused_calls(Params p) {
  LocalTensor<int8_t> d8 = output<int8_t>();
  LocalTensor<half> h = input<half>(), h1 = input<half>(kSecond);
  LocalTensor<float> f = input<float>(), f1 = input<float>(kSecond);
  LocalTensor<int16_t> i = input<int16_t>(), i1 = input<int16_t>(kSecond);
  uint32_t n = p[3];
  switch (p[11]) {
    case 0:
      return AddReluCast(d8, h, h1, n);
    case 1:
      return SubReluCast(d8, i, i1, n);
    case 2:
      return AddReluCast(output<half>(), f, f1, n);
    case 3:
      return MulCast(d8, h, h1, n);
    case 4:
      return MulCast(output<uint8_t>(), h, h1, n);
    case 5:
      SetDeqScale(p.as_float(12), static_cast<int16_t>(p[4]), true);
      return CastDequant<int8_t, int16_t, false, false>(d8, i, n);
    case 6: {
      VdeqInfo info;
      for (int k = 0; k < 16; k++) {
        info.vdeqScale[k] = p.as_float(12) * (k + 1);
        info.vdeqOffset[k] = static_cast<int16_t>(p[4] - k);
        info.vdeqSignMode[k] = false;
      }
      SetDeqScale(work<uint64_t>(), info);
      PipeBarrier<PIPE_ALL>();
      return CastDeq<uint8_t, int16_t, true, true>(output<uint8_t>(), i, n);
    }
    case 7:  // half sources, float destination
      return Axpy(output<float>(), h, static_cast<half>(p.as_float(12)), static_cast<int32_t>(n));
    case 8:
      return MulAddDst(output<float>(), h, h1, static_cast<int32_t>(n));
  }
}

// Calls that leave their mask, or another one, in the register; 7 leaves it alone. They write to w.
__aicore__ inline void leave_mask(int32_t which, LocalTensor<float> w, LocalTensor<float> s) {
  LocalTensor<float> shared = work<float>(16384);
  LocalTensor<uint8_t> bytes = work<uint8_t>(32768);
  LocalTensor<uint32_t> offsets = work<uint32_t>(40960);
  Duplicate(offsets.ReinterpretCast<int32_t>(), 0, 128);
  Duplicate(bytes.ReinterpretCast<int32_t>(), 0, 128);
  SetVectorMask<float>(0, 1);
  PipeBarrier<PIPE_ALL>();
  if (which == 4) WholeReduceSum(w, s, 10, 2, 1, 1, 8);
  if (which == 5) ReduceMax(w, s, shared, 3 * 64 + 5);
  if (which == 6) Brcb(w, s, 1, {1, 8});
  if (which == 7) Compare(bytes, s, s, CMPMODE::EQ, 128);
  if (which == 8) Gather(w, s, offsets, 0, 64 + 6);
  if (which == 9) ReduceSum(w, s, shared, 64, 5, 8);
  if (which == 10)
    Select<float, uint8_t, false>(w, bytes, s, s, SELMODE::VSEL_TENSOR_TENSOR_MODE, uint64_t(10), 1,
                                  {1, 1, 1, 8, 8, 8});
  if (which == 11) BlockReduceMax(w, s, 1, 12, 1, 1, 8);
  PipeBarrier<PIPE_ALL>();
}

// What the mask register holds after other calls: Adds under the register as it is.
__aicore__ inline void mask_state(Params p) {
  LocalTensor<float> d = output<float>(), s = input<float>(), w = work<float>();
  uint64_t bits[2] = {p.as_u64(13), p.as_u64(15)};
  if (p[11] == 0) SetVectorMask<float>(p[3]);
  if (p[11] == 1) Adds(w, s, 0.0f, bits, 1, {1, 1, 8, 8});  // leaves its mask
  if (p[11] == 2) {
    SetVectorMask<float>(0, 1);
    Adds(w, s, 0.0f, 100);  // leaves the default
  }
  if (p[11] >= 4) leave_mask(p[11], w, s);
  PipeBarrier<PIPE_V>();
  Adds<float, false>(d, s, p.as_float(12), MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
  if (p[11] == 3) {  // count form under the register
    SetVectorMask<float>(bits[1], bits[0]);
    PipeBarrier<PIPE_V>();
    Muls<float, false>(d, s, 2.0f, 1);
  }
  ResetMask();
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [](Params p) {
    if (p[0] == 60) return cast_calls(p);
    if (p[0] == 61) return fused_calls(p);
    if (p[0] == 62) return mask_state(p);
    if (p[0] >= 50)
      return p[1] == 0 ? compare_call<float>(p) : p[1] == 1 ? compare_call<half>(p) : compare_call<int32_t>(p);
    switch (p[1]) {
      case 0:
        return vector_call<float>(p);
      case 1:
        return vector_call<half>(p);
      case 2:
        return vector_call<int32_t>(p);
      case 3:
        return vector_call<int16_t>(p);
      case 4:
        return vector_call<uint16_t>(p);
      case 5:
        return vector_call<uint32_t>(p);
    }
  });
}
