// Vector instructions with one source. Cycles per 256-byte repeat: asc-devkit, theoretical throughput table, arch 2201.
#include "vnpu/unary.h"

#include "elementwise.h"
#include "fast_math.h"

namespace vnpu {
namespace {

// Reciprocal and Rsqrt are documented to miss an error of 1e-4 (float) and 1e-3 (half), no more is said; they are
// modelled as the exact value kept to 11 (float) and 8 (half) bits of mantissa, which is wrong by up to 2.4e-4 and
// 2.0e-3, so that nobody takes them for a division.
template <typename T>
float coarse(float exact) {
  constexpr uint32_t dropped = std::is_same_v<T, f16> ? 23 - 8 : 23 - 11;
  uint32_t bits = float_to_bits(exact);
  bool finite = (bits & 0x7f800000) != 0x7f800000;
  uint32_t rounded = (bits + (1u << (dropped - 1))) & ~((1u << dropped) - 1);
  return bits_to_float(finite ? rounded : bits);
}

template <typename T>
bool floating(UnaryOp op, const VectorCall& call, const Operand& d, const Operand& s) {
  auto each = [&](auto f) {
    elementwise<T, T>(call, f, d, s);
    return true;
  };
  switch (op) {
    case UnaryOp::Exp:
      return each([](float x) { return exp_lane(x); });
    case UnaryOp::Ln:
      return each([](float x) { return log_lane(x); });
    case UnaryOp::Abs:
      return each([](float x) { return std::fabs(x); });
    case UnaryOp::Sqrt:
      return each([](float x) { return std::sqrt(x); });
    case UnaryOp::Relu:
      return each([](float x) { return x < 0 ? 0.0f : x; });
    case UnaryOp::Reciprocal:
      return each([](float x) { return coarse<T>(1.0f / x); });
    case UnaryOp::Rsqrt:
      return each([](float x) { return coarse<T>(1.0f / std::sqrt(x)); });
    case UnaryOp::Not:
      return false;
  }
  return false;
}

bool compute_unary(UnaryOp op, const VectorCall& call, const Operand& d, const Operand& s) {
  switch (d.dtype) {
    case DType::F32:
      return floating<float>(op, call, d, s);
    case DType::F16:
      return floating<f16>(op, call, d, s);
    case DType::I32:
      if (op != UnaryOp::Relu) return false;
      elementwise<int32_t, int32_t>(call, [](int32_t x) { return std::max(x, 0); }, d, s);
      return true;
    case DType::I16:
    case DType::U16:
      if (op != UnaryOp::Not) return false;
      elementwise<uint16_t, uint16_t>(call, [](uint16_t x) { return ~x; }, d, s);
      return true;
    default:
      return false;
  }
}

}  // namespace

void unary(UnaryOp op, const Operand& dst, const Operand& src, const Lanes& lanes, const char* api) {
  const void* pc = VNPU_PC;
  VectorCall call(lanes, api, pc);
  call.operand(dst, true, "destination");
  call.operand(src, false, "source");
  if (!compute_unary(op, call, dst, src)) unsupported_dtype(api, dst.dtype, pc);
  call.issue();
  leave_mask(lanes);
}

}  // namespace vnpu
