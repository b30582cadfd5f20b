// Vector instructions with two sources. Cycles per 256-byte repeat: asc-devkit, theoretical throughput table, arch 2201.
#include "../core/vector.h"
#include "float16.h"

namespace vnpu {
namespace {

template <typename T, typename C>
void compute(BinaryOp op, const VectorCall& call, const Operand& d, const Operand& a, const Operand& b) {
  auto each = [&](auto f) {
    call.for_each<T, T, T>(d, a, b, [f](T& out, const T& x, const T& y) {
      out = static_cast<C>(f(static_cast<C>(x), static_cast<C>(y)));
    });
  };
  auto each_with_dst = [&](auto f) {
    call.for_each<T, T, T>(d, a, b, [f](T& out, const T& x, const T& y) {
      out = static_cast<C>(f(static_cast<C>(out), static_cast<C>(x), static_cast<C>(y)));
    });
  };
  switch (op) {
    case BinaryOp::Add:
      return each([](C x, C y) { return x + y; });
    case BinaryOp::Sub:
      return each([](C x, C y) { return x - y; });
    case BinaryOp::Mul:
      return each([](C x, C y) { return x * y; });
    case BinaryOp::Max:
      return each([](C x, C y) { return x > y ? x : y; });
    case BinaryOp::Min:
      return each([](C x, C y) { return x < y ? x : y; });
    case BinaryOp::AddRelu:
      return each([](C x, C y) { return std::max<C>(x + y, 0); });
    case BinaryOp::SubRelu:
      return each([](C x, C y) { return std::max<C>(x - y, 0); });
    case BinaryOp::MulAddDst:
      return each_with_dst([](C o, C x, C y) { return x * y + o; });
    case BinaryOp::FusedMulAdd:
      return each_with_dst([](C o, C x, C y) { return x * o + y; });
    case BinaryOp::FusedMulAddRelu:
      return each_with_dst([](C o, C x, C y) { return std::max<C>(x * o + y, 0); });
    case BinaryOp::Div:
      if constexpr (std::is_floating_point_v<C>) return each([](C x, C y) { return x / y; });
      break;
    case BinaryOp::And:
      if constexpr (std::is_integral_v<C>) return each([](C x, C y) { return x & y; });
      break;
    case BinaryOp::Or:
      if constexpr (std::is_integral_v<C>) return each([](C x, C y) { return x | y; });
      break;
  }
}

double cycles_per_repeat(BinaryOp op, DType t) {
  if (op == BinaryOp::Div) return t == DType::F16 ? 4 : 2;
  return op == BinaryOp::MulAddDst ? 2 : 1;
}

}  // namespace

void binary(BinaryOp op, const Operand& dst, const Operand& src0, const Operand& src1, const Lanes& lanes,
            const char* api) {
  const void* pc = VNPU_PC;
  VectorCall call(lanes, api, pc);
  call.operand(dst, true, "destination");
  call.operand(src0, false, "first source");
  call.operand(src1, false, "second source");
  bool bitwise = op == BinaryOp::And || op == BinaryOp::Or;
  switch (dst.dtype) {
    case DType::F32:
      if (bitwise) unsupported_dtype(api, dst.dtype, pc);
      compute<float, float>(op, call, dst, src0, src1);
      break;
    case DType::F16:
      if (bitwise) unsupported_dtype(api, dst.dtype, pc);
      compute<f16, float>(op, call, dst, src0, src1);
      break;
    case DType::I32:
      if (bitwise || op == BinaryOp::Div) unsupported_dtype(api, dst.dtype, pc);
      compute<int32_t, int32_t>(op, call, dst, src0, src1);
      break;
    case DType::I16:
      if (op == BinaryOp::Div) unsupported_dtype(api, dst.dtype, pc);
      compute<int16_t, int16_t>(op, call, dst, src0, src1);
      break;
    case DType::U16:
      if (!bitwise) unsupported_dtype(api, dst.dtype, pc);
      compute<uint16_t, uint16_t>(op, call, dst, src0, src1);
      break;
    default:
      unsupported_dtype(api, dst.dtype, pc);
  }
  call.issue(cycles_per_repeat(op, dst.dtype));
}

}  // namespace vnpu
