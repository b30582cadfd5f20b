// Conversions. Data type pairs and their rounding modes: AscendC reference, Cast, table of Atlas A2; elements per
// cycle: theoretical throughput table, arch 2201 (one repeat of the wider type a cycle, and 32 elements for int64).
#include "vnpu/cast.h"

#include <string>

#include "elementwise.h"
#include "local_call.h"
#include "rounding.h"

namespace vnpu {
namespace {

// Bits of rounding modes a pair of types takes.
constexpr uint32_t mode_bit(Round r) { return 1u << static_cast<int>(r); }
constexpr uint32_t kNone = mode_bit(Round::None);
constexpr uint32_t kFive = mode_bit(Round::Rint) | mode_bit(Round::Floor) | mode_bit(Round::Ceil) |
                           mode_bit(Round::Away) | mode_bit(Round::Trunc);
constexpr uint32_t kAny = ~0u;

struct Pair {
  DType src, dst;
  uint32_t modes;
};
constexpr Pair kPairs[] = {
    {DType::I4, DType::F16, kNone},
    {DType::I8, DType::F16, kNone},
    {DType::U8, DType::F16, kNone},
    {DType::I16, DType::F16, kFive | kNone},
    {DType::I16, DType::F32, kNone},
    {DType::F16, DType::I4, kFive | kNone},
    {DType::F16, DType::I8, kFive | kNone},
    {DType::F16, DType::U8, kFive | kNone},
    {DType::F16, DType::I16, kFive},
    {DType::F16, DType::I32, kFive},
    {DType::F16, DType::F32, kNone},
    {DType::BF16, DType::I32, kFive},
    {DType::BF16, DType::F32, kNone},
    {DType::I32, DType::I16, kNone},
    {DType::I32, DType::F16, kAny},
    {DType::I32, DType::F32, kFive | kNone},
    {DType::I32, DType::I64, kNone},
    {DType::F32, DType::I16, kFive},
    {DType::F32, DType::F16, kFive | kNone | mode_bit(Round::Odd)},
    {DType::F32, DType::BF16, kFive},
    {DType::F32, DType::I32, kFive},
    {DType::F32, DType::F32, kFive},
    {DType::F32, DType::I64, kFive},
    {DType::I64, DType::I32, kNone},
    {DType::I64, DType::F32, kFive},
};

const char* const kRoundNames[] = {"CAST_NONE",  "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                   "CAST_ROUND", "CAST_TRUNC", "CAST_ODD",   "CAST_HYBRID"};
const char* type_name(DType t) {
  static const char* const names[] = {"float",    "half",      "bfloat16_t", "int8_t",  "uint8_t",  "int16_t",
                                      "uint16_t", "int32_t",   "uint32_t",   "int64_t", "uint64_t", "double",
                                      "bool",     "complex64", "int4b_t",    "none"};
  return names[static_cast<int>(t)];
}

void check_pair(DType dst, DType src, Round round, const void* pc) {
  for (const Pair& p : kPairs) {
    if (p.src != src || p.dst != dst) continue;
    if (p.modes & mode_bit(round)) return;
    // The device issues nothing then (dav_c220, kernel_operator_vec_vconv_impl.h): the destination stays as it was.
    throw KernelError(KernelError::kUnsupported,
                      std::string("Cast from ") + type_name(src) + " to " + type_name(dst) + " does not take " +
                          kRoundNames[static_cast<int>(round) & 7] + " on architecture 2201",
                      "Cast", pc);
  }
  throw KernelError(
      KernelError::kUnsupported,
      std::string("Cast from ") + type_name(src) + " to " + type_name(dst) + " does not exist on architecture 2201",
      "Cast", pc);
}

// f(std::integral_constant<Round, mode>) with the mode as a constant, so that loops over to_integral vectorize.
template <typename F>
void with_rounding(Round round, F f) {
  switch (round) {
    case Round::Floor:
      return f(std::integral_constant<Round, Round::Floor>());
    case Round::Ceil:
      return f(std::integral_constant<Round, Round::Ceil>());
    case Round::Away:
      return f(std::integral_constant<Round, Round::Away>());
    case Round::Trunc:
      return f(std::integral_constant<Round, Round::Trunc>());
    default:
      return f(std::integral_constant<Round, Round::Rint>());
  }
}

struct Conversion {
  const VectorCall& call;
  const Operand &d, &s;
  Round round;

  // Widening and other exact conversions, or the rounding of the C++ conversion (to nearest even).
  template <typename D, typename S>
  void plain() const {
    elementwise<D, S>(call, [](compute_t<S> x) { return static_cast<compute_t<D>>(x); }, d, s);
  }
  template <typename I, typename S>
  void to_integer() const {
    with_rounding(round, [&](auto mode) {
      elementwise<I, S>(call, [](float x) { return saturate<I>(to_integral<decltype(mode)::value>(x)); }, d, s);
    });
  }
  template <typename I, typename S>
  void narrow_integer() const {
    elementwise<I, S>(call, [](S x) { return saturate<I>(static_cast<int64_t>(x)); }, d, s);
  }
  template <typename D, typename Format, typename S>
  void to_float() const {
    if (round == Round::None || round == Round::Rint) return plain<D, S>();
    elementwise<typename Format::Bits, S>(
        call, [mode = round](compute_t<S> x) { return round_to<Format>(x, mode); }, d, s);
  }
};

// int32 to half through DEQSCALE. The device scales by 2^-17 and back so that nothing overflows on the way; here the
// product is exact and rounded once.
void scale_to_half(const VectorCall& call, const Operand& d, const Operand& s) {
  double scale = half_to_float(static_cast<uint16_t>(core().dequant));
  elementwise<f16, int32_t>(call, [scale](int32_t x) { return static_cast<float>(x * scale); }, d, s);
}

void convert_half(const Conversion& c) {
  switch (c.d.dtype) {
    case DType::I8:
      return c.to_integer<int8_t, f16>();
    case DType::U8:
      return c.to_integer<uint8_t, f16>();
    case DType::I16:
      return c.to_integer<int16_t, f16>();
    case DType::I32:
      return c.to_integer<int32_t, f16>();
    default:
      return c.plain<float, f16>();
  }
}

void convert_int32(const Conversion& c) {
  switch (c.d.dtype) {
    case DType::I16:
      return c.narrow_integer<int16_t, int32_t>();
    case DType::F16:
      return scale_to_half(c.call, c.d, c.s);
    case DType::I64:
      return c.plain<int64_t, int32_t>();
    default:
      return c.to_float<float, FloatFormat, int32_t>();
  }
}

void convert_float(const Conversion& c) {
  switch (c.d.dtype) {
    case DType::F16:
      return c.to_float<f16, HalfFormat, float>();
    case DType::BF16:
      return c.to_float<bf16, Bfloat16Format, float>();
    case DType::I16:
      return c.to_integer<int16_t, float>();
    case DType::I32:
      return c.to_integer<int32_t, float>();
    case DType::I64:
      return c.to_integer<int64_t, float>();
    default:
      return with_rounding(c.round, [&](auto mode) {
        elementwise<float, float>(c.call, [](float x) { return to_integral<decltype(mode)::value>(x); }, c.d, c.s);
      });
  }
}

void convert(const Conversion& c) {
  const DType to = c.d.dtype;
  switch (c.s.dtype) {
    case DType::I8:
      return c.plain<f16, int8_t>();
    case DType::U8:
      return c.plain<f16, uint8_t>();
    case DType::I16:
      return to == DType::F32 ? c.plain<float, int16_t>() : c.to_float<f16, HalfFormat, int16_t>();
    case DType::F16:
      return convert_half(c);
    case DType::BF16:
      return to == DType::I32 ? c.to_integer<int32_t, bf16>() : c.plain<float, bf16>();
    case DType::I32:
      return convert_int32(c);
    case DType::F32:
      return convert_float(c);
    default:
      return to == DType::I32 ? c.narrow_integer<int32_t, int64_t>() : c.to_float<float, FloatFormat, int64_t>();
  }
}

// int4b_t: two elements a byte, the first in the low half. n is even.
void unpack_int4(f16* values, const uint8_t* bytes, uint32_t n) {
  const auto sign_extend = [](int v) { return static_cast<float>(v >= 8 ? v - 16 : v); };
  for (uint32_t l = 0; l < n; l += 2) {
    values[l] = sign_extend(bytes[l / 2] & 15);
    values[l + 1] = sign_extend(bytes[l / 2] >> 4);
  }
}

template <Round mode>
int to_int4(float x) {
  const float v = to_integral<mode>(x);
  return v != v ? 0 : v < -8 ? -8 : v > 7 ? 7 : static_cast<int>(v);
}

void pack_int4(uint8_t* bytes, const f16* values, uint32_t n, Round round) {
  with_rounding(round, [&](auto mode) {
    constexpr Round how = decltype(mode)::value;
    for (uint32_t l = 0; l < n; l += 2)
      bytes[l / 2] = static_cast<uint8_t>((to_int4<how>(values[l]) & 15) | (to_int4<how>(values[l + 1]) & 15) << 4);
  });
}

// Lanes are pairs: counts and masks must be even.
void convert_int4(const Operand& dst, const Operand& src, Round round, const Lanes& lanes, const void* pc) {
  const bool narrow = dst.dtype == DType::I4;
  const Operand &half = narrow ? src : dst, &packed = narrow ? dst : src;
  constexpr uint32_t per_repeat = kRepeatBytes / 2;
  VectorCall call(lanes, "Cast", pc, per_repeat);
  // The packed side has half a byte a lane: as bytes it is an operand of 64 lanes a repeat.
  call.operand(half, !narrow, narrow ? "source" : "destination");
  LocalCall other("Cast", pc);
  auto pairs = [&](uint32_t r, uint32_t n) {
    auto* bytes = static_cast<uint8_t*>(packed.ptr) + r * packed.rep_stride * kBlockBytes;
    auto* values = VectorCall::at<f16>(half, r, 0);
    other.require(n % 2 == 0, "int4b_t takes an even number of elements and pairs of equal mask bits");
    if (narrow) {
      other.write(bytes, n / 2, "destination");
      pack_int4(bytes, values, n, round);
    } else {
      other.read(bytes, n / 2, "source");
      unpack_int4(values, bytes, n);
    }
    call.core().touches({{reinterpret_cast<uint64_t>(bytes), n / 2, 1, 0}, narrow});
  };
  const bool gapless = half.blk_stride == 1 && half.rep_stride == 8 && packed.rep_stride == 2;
  uint32_t prefix = 0;
  while (prefix < per_repeat && call.enabled(prefix)) prefix++;
  call.issue();
  if (call.contiguous() && gapless) return pairs(0, call.count());
  for (uint32_t r = 0, n = call.repeats(); r < n; r++)
    pairs(r, call.contiguous() ? std::min(per_repeat, call.count() - r * per_repeat) : prefix);
}

}  // namespace

void cast(const Operand& dst, const Operand& src, Round round, const Lanes& lanes) {
  const void* pc = VNPU_PC;
  check_pair(dst.dtype, src.dtype, round, pc);
  if (dst.dtype == DType::I4 || src.dtype == DType::I4) {
    convert_int4(dst, src, round, lanes, pc);
    return leave_mask(lanes);
  }
  const uint32_t widest = std::max(dtype_size(dst.dtype), dtype_size(src.dtype));
  VectorCall call(lanes, "Cast", pc, kRepeatBytes / widest);
  call.operand(dst, true, "destination");
  call.operand(src, false, "source");
  convert({call, dst, src, round});
  call.issue();
  leave_mask(lanes);
}

void set_dequant(uint64_t bits) {
  core().dequant = bits;
  core().scalar(ScalarKind::Cycle);
}

namespace {

// What one DEQSCALE word says in the int16 to 8-bit form: a scale with 10 bits of mantissa, a 9-bit offset, a sign.
struct DequantWord {
  explicit DequantWord(uint64_t word)
      : scale(bits_to_float(static_cast<uint32_t>(word) & ~0x1fffu)),
        offset(static_cast<int32_t>(static_cast<uint32_t>(word >> 37 & 0x1ff) << 23) >> 23),
        is_signed(word >> 46 & 1) {}
  uint8_t operator()(int16_t x) const {
    float v = std::rint(static_cast<float>(x) * scale) + static_cast<float>(offset);
    return is_signed ? static_cast<uint8_t>(saturate<int8_t>(v)) : saturate<uint8_t>(v);
  }
  float scale;
  int32_t offset;
  bool is_signed;
};

}  // namespace

// 8-bit results of a 32-byte source block fill one half of the destination block of the same number; the other half
// keeps its values.
void cast_dequant(const Operand& dst, const Operand& src, const DequantForm& form, const Lanes& lanes) {
  const void* pc = VNPU_PC;
  const char* api = "CastDequant";
  const bool to_half = src.dtype == DType::I32 && dst.dtype == DType::F16;
  const bool to_byte = src.dtype == DType::I16 && (dst.dtype == DType::I8 || dst.dtype == DType::U8);
  if (!to_half && !to_byte) unsupported_dtype(api, src.dtype, pc);
  VectorCall call(lanes, api, pc, kRepeatBytes / dtype_size(src.dtype));
  if (to_half) {
    call.operand(dst, true, "destination");
    call.operand(src, false, "source");
    scale_to_half(call, dst, src);
    call.issue();
    return leave_mask(lanes);
  }
  // The destination is written at the lanes of int16 blocks: declared as such.
  Operand blocks = dst;
  blocks.dtype = DType::I16;
  call.operand(blocks, true, "destination");
  call.operand(src, false, "source");
  const uint64_t* table = nullptr;
  if (form.vector) {
    table = reinterpret_cast<const uint64_t*>(call.core().dequant);
    Range range{reinterpret_cast<uint64_t>(table), 16 * sizeof(uint64_t), 1, 0};
    call.core().check_local(range, kBlockBytes, api, pc, "table of SetDeqScale");
  }
  const uint32_t per_repeat = call.lanes_per_repeat();
  for (uint32_t r = 0, n = call.repeats(); r < n; r++)
    for (uint32_t l = 0; l < per_repeat; l++) {
      if (call.contiguous() ? r * per_repeat + l >= call.count() : !call.enabled(l)) continue;
      auto* block = static_cast<uint8_t*>(dst.ptr) + (r * dst.rep_stride + l / 16 * dst.blk_stride) * kBlockBytes;
      DequantWord dequant(form.vector ? table[l % 16] : call.core().dequant);
      block[(form.half_block ? 16 : 0) + l % 16] = dequant(*VectorCall::at<int16_t>(src, r, l));
    }
  call.issue();
  leave_mask(lanes);
}

namespace {

struct FusedOperands {
  const VectorCall& call;
  const Operand &d, &a, &b;
};

float to_half_and_back(float v) { return half_to_float(float_to_half(v)); }

// Mul into 8 bits. False when there is no such form.
bool multiply_cast(const FusedOperands& o) {
  if (o.a.dtype != DType::F16) return false;
  const auto product = [](float x, float y) { return std::rint(to_half_and_back(x * y)); };
  if (o.d.dtype == DType::I8)
    elementwise<int8_t, f16, f16>(
        o.call, [=](float x, float y) { return saturate<int8_t>(product(x, y)); }, o.d, o.a, o.b);
  else if (o.d.dtype == DType::U8)
    elementwise<uint8_t, f16, f16>(
        o.call, [=](float x, float y) { return saturate<uint8_t>(product(x, y)); }, o.d, o.a, o.b);
  else
    return false;
  return true;
}

// relu(sum), where sum(x, y) is x + y or x - y. It has the precision of the sources before it is converted. False when
// there is no such form.
template <typename Sum>
bool relu_cast(const FusedOperands& o, Sum sum) {
  const auto relu = [=](float x, float y) {
    const float v = sum(x, y);
    return v < 0 ? 0.0f : v;
  };
  const DType to = o.d.dtype, from = o.a.dtype;
  if (from == DType::F16 && to == DType::I8)
    elementwise<int8_t, f16, f16>(
        o.call, [=](float x, float y) { return saturate<int8_t>(std::rint(to_half_and_back(relu(x, y)))); }, o.d, o.a,
        o.b);
  else if (from == DType::I16 && to == DType::I8)
    elementwise<int8_t, int16_t, int16_t>(
        o.call,
        [=](int16_t x, int16_t y) { return saturate<int8_t>(relu(static_cast<float>(x), static_cast<float>(y))); }, o.d,
        o.a, o.b);
  else if (from == DType::F32 && to == DType::F16)
    elementwise<f16, float, float>(o.call, relu, o.d, o.a, o.b);
  else
    return false;
  return true;
}

bool compute_fused(FusedCast op, const FusedOperands& o) {
  if (op == FusedCast::Mul) return multiply_cast(o);
  if (op == FusedCast::SubRelu) return relu_cast(o, [](float x, float y) { return x - y; });
  return relu_cast(o, [](float x, float y) { return x + y; });
}

}  // namespace

void fused_cast(FusedCast op, const Operand& dst, const Operand& src0, const Operand& src1, const Lanes& lanes,
                const char* api) {
  const void* pc = VNPU_PC;
  VectorCall call(lanes, api, pc, kRepeatBytes / dtype_size(src0.dtype));
  call.operand(dst, true, "destination");
  call.operand(src0, false, "first source");
  call.operand(src1, false, "second source");
  if (!compute_fused(op, {call, dst, src0, src1})) unsupported_dtype(api, src0.dtype, pc);
  call.issue();
  leave_mask(lanes);
}

}  // namespace vnpu
