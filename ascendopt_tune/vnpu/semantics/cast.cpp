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
constexpr uint32_t bit(Round r) { return 1u << static_cast<int>(r); }
constexpr uint32_t kNone = bit(Round::None);
constexpr uint32_t kFive =
    bit(Round::Rint) | bit(Round::Floor) | bit(Round::Ceil) | bit(Round::Away) | bit(Round::Trunc);
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
    {DType::F32, DType::F16, kFive | kNone | bit(Round::Odd)},
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
    if (p.modes & bit(round)) return;
    // The tables give CAST_RINT where CAST_NONE means the same; kernels use both.
    if (round == Round::None && (p.modes & bit(Round::Rint))) return;
    if (round == Round::Rint && p.modes == kNone) return;
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
void with_mode(Round round, F f) {
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
    with_mode(round, [&](auto mode) {
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
void dequantize(const VectorCall& call, const Operand& d, const Operand& s) {
  double scale = half_to_float(static_cast<uint16_t>(core().dequant));
  elementwise<f16, int32_t>(call, [scale](int32_t x) { return static_cast<float>(x * scale); }, d, s);
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
      if (to == DType::I8) return c.to_integer<int8_t, f16>();
      if (to == DType::U8) return c.to_integer<uint8_t, f16>();
      if (to == DType::I16) return c.to_integer<int16_t, f16>();
      if (to == DType::I32) return c.to_integer<int32_t, f16>();
      return c.plain<float, f16>();
    case DType::BF16:
      return to == DType::I32 ? c.to_integer<int32_t, bf16>() : c.plain<float, bf16>();
    case DType::I32:
      if (to == DType::I16) return c.narrow_integer<int16_t, int32_t>();
      if (to == DType::F16) return dequantize(c.call, c.d, c.s);
      if (to == DType::I64) return c.plain<int64_t, int32_t>();
      return c.to_float<float, FloatFormat, int32_t>();
    case DType::F32:
      if (to == DType::F16) return c.to_float<f16, HalfFormat, float>();
      if (to == DType::BF16) return c.to_float<bf16, Bfloat16Format, float>();
      if (to == DType::I16) return c.to_integer<int16_t, float>();
      if (to == DType::I32) return c.to_integer<int32_t, float>();
      if (to == DType::I64) return c.to_integer<int64_t, float>();
      with_mode(c.round, [&](auto mode) {
        elementwise<float, float>(c.call, [](float x) { return to_integral<decltype(mode)::value>(x); }, c.d, c.s);
      });
      return;
    default:
      return to == DType::I32 ? c.narrow_integer<int32_t, int64_t>() : c.to_float<float, FloatFormat, int64_t>();
  }
}

// int4b_t: two elements a byte, the first in the low half. Lanes are pairs: counts and masks must be even.
void convert_int4(const Operand& dst, const Operand& src, Round round, const Lanes& lanes, const void* pc) {
  const bool narrow = dst.dtype == DType::I4;
  const Operand &half = narrow ? src : dst, &packed = narrow ? dst : src;
  constexpr uint32_t per_repeat = kRepeatBytes / 2;
  VectorCall call(lanes, "Cast", pc, per_repeat);
  // The packed side has half a byte a lane: as bytes it is an operand of 64 lanes a repeat.
  call.operand(half, narrow ? false : true, narrow ? "source" : "destination");
  LocalCall other("Cast", pc);
  auto pairs = [&](uint32_t r, uint32_t n) {
    auto* bytes = static_cast<uint8_t*>(packed.ptr) + r * packed.rep_stride * kBlockBytes;
    auto* values = VectorCall::at<f16>(half, r, 0);
    other.require(n % 2 == 0, "int4b_t takes an even number of elements and pairs of equal mask bits");
    if (narrow)
      other.write(bytes, n / 2, "destination");
    else
      other.read(bytes, n / 2, "source");
    for (uint32_t l = 0; l < n; l += 2) {
      if (!narrow) {
        auto sign_extend = [](int v) { return static_cast<float>(v >= 8 ? v - 16 : v); };
        values[l] = sign_extend(bytes[l / 2] & 15);
        values[l + 1] = sign_extend(bytes[l / 2] >> 4);
        continue;
      }
      uint8_t both = 0;
      with_mode(round, [&](auto mode) {
        for (int k = 0; k < 2; k++) {
          float v = to_integral<decltype(mode)::value>(values[l + k]);
          int i = v != v ? 0 : v < -8 ? -8 : v > 7 ? 7 : static_cast<int>(v);
          both = static_cast<uint8_t>(both | (i & 15) << (4 * k));
        }
      });
      bytes[l / 2] = both;
    }
    Access access{{reinterpret_cast<uint64_t>(bytes), n / 2, 1, 0}, narrow};
    call.core().hazards.access(&access, 1);
  };
  const bool gapless = half.blk_stride == 1 && half.rep_stride == 8 && packed.rep_stride == 2;
  uint32_t prefix = 0;
  while (prefix < per_repeat && call.enabled(prefix)) prefix++;
  call.issue();
  if (call.contiguous() && gapless) {
    pairs(0, call.count());
  } else {
    for (uint32_t r = 0, n = call.repeats(); r < n; r++)
      pairs(r, call.contiguous() ? std::min(per_repeat, call.count() - r * per_repeat) : prefix);
  }
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
struct Dequant {
  explicit Dequant(uint64_t word)
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
    dequantize(call, dst, src);
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
      Dequant dequant(form.vector ? table[l % 16] : call.core().dequant);
      block[(form.half_block ? 16 : 0) + l % 16] = dequant(*VectorCall::at<int16_t>(src, r, l));
    }
  call.issue();
  leave_mask(lanes);
}

void fused_cast(FusedCast op, const Operand& dst, const Operand& src0, const Operand& src1, const Lanes& lanes,
                const char* api) {
  const void* pc = VNPU_PC;
  VectorCall call(lanes, api, pc, kRepeatBytes / dtype_size(src0.dtype));
  call.operand(dst, true, "destination");
  call.operand(src0, false, "first source");
  call.operand(src1, false, "second source");
  const bool subtract = op == FusedCast::SubRelu;
  auto relu = [subtract](float x, float y) {
    float v = subtract ? x - y : x + y;
    return v < 0 ? 0.0f : v;
  };
  // The sum has the precision of the sources before it is converted.
  auto half = [](float v) { return half_to_float(float_to_half(v)); };
  const DType s = src0.dtype, d = dst.dtype;
  if (op == FusedCast::Mul && s == DType::F16 && d == DType::I8)
    elementwise<int8_t, f16, f16>(
        call, [half](float x, float y) { return saturate<int8_t>(std::rint(half(x * y))); }, dst, src0, src1);
  else if (op == FusedCast::Mul && s == DType::F16 && d == DType::U8)
    elementwise<uint8_t, f16, f16>(
        call, [half](float x, float y) { return saturate<uint8_t>(std::rint(half(x * y))); }, dst, src0, src1);
  else if (op != FusedCast::Mul && s == DType::F16 && d == DType::I8)
    elementwise<int8_t, f16, f16>(
        call, [relu, half](float x, float y) { return saturate<int8_t>(std::rint(half(relu(x, y)))); }, dst, src0,
        src1);
  else if (op != FusedCast::Mul && s == DType::I16 && d == DType::I8)
    elementwise<int8_t, int16_t, int16_t>(
        call,
        [relu](int16_t x, int16_t y) { return saturate<int8_t>(relu(static_cast<float>(x), static_cast<float>(y))); },
        dst, src0, src1);
  else if (op != FusedCast::Mul && s == DType::F32 && d == DType::F16)
    elementwise<f16, float, float>(call, relu, dst, src0, src1);
  else
    unsupported_dtype(api, s, pc);
  call.issue();
  leave_mask(lanes);
}

}  // namespace vnpu
