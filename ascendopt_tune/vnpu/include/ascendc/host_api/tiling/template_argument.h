// Kernels whose template arguments the tiling function chooses: both sides include the declaration of the arguments,
// the tiling key is made of their values, and the kernel is instantiated for the key (build/kernel.py).
//
// Each argument takes its bits of the key, the first one the lowest: for numbers and dtypes the position among the
// declared values, for booleans the value. A dtype that is an input's or an output's (ASCENDC_TPL_INPUT) is what the
// case has there, whatever the key says: the tiling function may say nothing of it. Of ASCENDC_TPL_SEL, which says what
// combinations are built beforehand, only the kernel types count: each combination is built when it is asked for. A
// template parameter that is a type has a dtype declared for it (ASCENDC_TPL_DATATYPE_DECL).
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace ascendc_tpl {

constexpr uint32_t kMaxValues = 256;

struct Param {
  uint32_t bits = 0;
  uint32_t count = 0;  // of values; 0: any value that has room in the bits
  uint64_t values[kMaxValues] = {};
  uint64_t bound = 0;  // to an input or an output (the first that is named); 0: to nothing
};

constexpr uint64_t kInput = 100000000, kOutput = 900000000;  // and the index

constexpr uint64_t kRange = 0, kList = 1, kMix = 2;

constexpr void add(Param& param, uint64_t value) {
  if (param.count < kMaxValues) param.values[param.count++] = value;
}

// `given`: kList and the values; kRange, how many ranges, and the two ends of each; kMix, as kRange and then values.
constexpr Param number(uint32_t bits, std::initializer_list<uint64_t> given) {
  Param out;
  out.bits = bits;
  const uint64_t* at = given.begin();
  const uint64_t mode = *at++;
  if (mode != kList) {
    for (uint64_t ranges = *at++; ranges > 0; --ranges, at += 2) {
      for (uint64_t value = at[0]; value <= at[1]; ++value) add(out, value);
    }
  }
  for (; at != given.end(); ++at) add(out, *at);
  return out;
}

constexpr Param choice(uint32_t bits, std::initializer_list<uint64_t> given) {
  Param out;
  out.bits = bits;
  for (const uint64_t value : given) {
    if (value < kInput) {
      add(out, value);
    } else if (out.bound == 0) {
      out.bound = value;
    }
  }
  return out;
}

constexpr Param boolean() {
  Param out;
  out.bits = 1;
  return out;
}

// The key of these values; all ones if one of them is not declared.
template <size_t N, size_t M>
constexpr uint64_t key_of(const Param (&params)[N], const uint64_t (&values)[M]) {
  static_assert(M == N, "GET_TPL_TILING_KEY needs a value for each declared argument");
  uint64_t key = 0;
  uint32_t shift = 0;
  for (size_t i = 0; i < N; ++i) {
    uint64_t code = values[i];
    if (params[i].count > 0) {
      code = 0;
      while (code < params[i].count && params[i].values[code] != values[i]) ++code;
      if (code == params[i].count) return ~uint64_t{0};
    }
    key |= code << shift;
    shift += params[i].bits;
  }
  return key;
}

// Is the key made of declared values? What the case says, whatever the key does, may be anything.
template <size_t N>
constexpr bool declares(const Param (&params)[N], uint64_t key) {
  for (const Param& param : params) {
    const uint64_t code = key & ((uint64_t{1} << param.bits) - 1);
    if (param.bound == 0 && param.count > 0 && code >= param.count) return false;
    key >>= param.bits;
  }
  return key == 0;
}

// The value that argument `number` has in a key; `inputs` and `outputs`: the case's dtypes, in the definition's order.
template <size_t N, size_t I, size_t O>
constexpr uint64_t value_of(const Param (&params)[N], size_t number, uint64_t key, const uint64_t (&inputs)[I],
                            const uint64_t (&outputs)[O]) {
  const uint64_t bound = params[number].bound;
  if (bound >= kOutput) return outputs[bound - kOutput];
  if (bound >= kInput) return inputs[bound - kInput];
  for (size_t i = 0; i < number; ++i) key >>= params[i].bits;
  const uint64_t code = key & ((uint64_t{1} << params[number].bits) - 1);
  return params[number].count > 0 ? params[number].values[code] : code;
}

// Where in a file something is declared, by __COUNTER__: what is asked for at one place finds what was declared last
// before it, as the nearest of its bases.
template <int place>
struct Place : Place<place - 1> {};
template <>
struct Place<0> {};

template <size_t N>
struct Declared {
  Param params[N] = {};
};

template <size_t N>
constexpr Declared<N> declared(const Param (&given)[N]) {
  Declared<N> out;
  for (size_t i = 0; i < N; ++i) out.params[i] = given[i];
  return out;
}

// The kernel's type of a dtype, by its number; specialized where a kernel asks for it.
template <uint64_t dtype>
struct TypeOf;

}  // namespace ascendc_tpl

// Numbers of dtypes (ge::DataType) that both sides may name.
enum : uint32_t {
  C_DT_FLOAT = 0,
  C_DT_FLOAT16 = 1,
  C_DT_INT8 = 2,
  C_DT_INT32 = 3,
  C_DT_UINT8 = 4,
  C_DT_INT16 = 6,
  C_DT_UINT16 = 7,
  C_DT_UINT32 = 8,
  C_DT_INT64 = 9,
  C_DT_UINT64 = 10,
  C_DT_DOUBLE = 11,
  C_DT_BOOL = 12,
  C_DT_BF16 = 27,
};

#define ASCENDC_TPL_UI_RANGE ascendc_tpl::kRange
#define ASCENDC_TPL_UI_LIST ascendc_tpl::kList
#define ASCENDC_TPL_UI_MIX ascendc_tpl::kMix
#define ASCENDC_TPL_1_BW 1
#define ASCENDC_TPL_2_BW 2
#define ASCENDC_TPL_4_BW 4
#define ASCENDC_TPL_8_BW 8
#define ASCENDC_TPL_UINT_DECL(name, bits, ...) ascendc_tpl::number(bits, {__VA_ARGS__})
#define ASCENDC_TPL_BOOL_DECL(name, ...) ascendc_tpl::boolean()
#define ASCENDC_TPL_DTYPE_DECL(name, ...) ascendc_tpl::choice(8, {__VA_ARGS__})
#define ASCENDC_TPL_DATATYPE_DECL(name, ...) ascendc_tpl::choice(8, {__VA_ARGS__})
#define ASCENDC_TPL_INPUT(index) (ascendc_tpl::kInput + (index))
#define ASCENDC_TPL_OUTPUT(index) (ascendc_tpl::kOutput + (index))
#define ASCENDC_TPL_FORMAT_DECL(name, ...) ascendc_tpl::choice(8, {__VA_ARGS__})
// Which cores run the kernel: build/template_types.py reads it of the key as well.
#define ASCENDC_TPL_KERNEL_TYPE_DECL(name, ...) ascendc_tpl::choice(8, {__VA_ARGS__})
#define ASCENDC_TPL_AIV_ONLY 0
#define ASCENDC_TPL_AIC_ONLY 1
#define ASCENDC_TPL_MIX_AIV_1_0 4
#define ASCENDC_TPL_MIX_AIC_1_0 5
#define ASCENDC_TPL_MIX_AIC_1_1 6
#define ASCENDC_TPL_MIX_AIC_1_2 7
#define ASCENDC_TPL_AICORE 8
// A kernel may see the declaration twice (a header without a guard): for CANN it is nothing there that compiles.
#define ASCENDC_TPL_ARGS_DECL(op, ...) VNPU_TPL_DECLARED(__COUNTER__, __VA_ARGS__)
#define VNPU_TPL_DECLARED(place, ...)                                                      \
  [[maybe_unused]] static constexpr auto ascendc_tpl_declared(ascendc_tpl::Place<place>) { \
    return ascendc_tpl::declared({__VA_ARGS__});                                           \
  }                                                                                        \
  static_assert(true, "")
#define ascendc_tpl_params ascendc_tpl_declared(ascendc_tpl::Place<__COUNTER__>{}).params
// Of a kernel the run-time compiler reads there which cores it runs on (runtime/rtc_templates.cpp).
#ifdef __CCE_AICORE__
#define ASCENDC_TPL_SEL(...) VNPU_TPL_SELECTED(__VA_ARGS__)
#else
#define ASCENDC_TPL_SEL(...)
#endif
#define GET_TPL_TILING_KEY(...) ascendc_tpl::key_of(ascendc_tpl_params, {__VA_ARGS__})
#define ASCENDC_TPL_SEL_PARAM(context, ...) (context)->SetTilingKey(GET_TPL_TILING_KEY(__VA_ARGS__))
