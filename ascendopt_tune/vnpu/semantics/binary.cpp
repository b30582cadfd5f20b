// Vector instructions with two sources. Cycles per 256-byte repeat: asc-devkit, theoretical throughput table, arch
// 2201; data types: AscendC reference, tables of Atlas A2. Integers wrap around: the reference gives no rule.
#include <type_traits>

#include "elementwise.h"

namespace vnpu {
namespace {

constexpr uint32_t op_bit(BinaryOp op) { return 1u << static_cast<int>(op); }
constexpr uint32_t kBasic = op_bit(BinaryOp::Add) | op_bit(BinaryOp::Sub) | op_bit(BinaryOp::Mul) |
                            op_bit(BinaryOp::Max) | op_bit(BinaryOp::Min);
constexpr uint32_t kBits = op_bit(BinaryOp::And) | op_bit(BinaryOp::Or);
constexpr uint32_t kRelu = op_bit(BinaryOp::AddRelu) | op_bit(BinaryOp::SubRelu);

uint32_t operations_of(DType t) {
  switch (t) {
    case DType::F32:
    case DType::F16:
      return ~kBits;
    case DType::I32:
      return kBasic;
    case DType::I16:
      return kBasic | kBits | kRelu;
    case DType::U16:
      return kBits;
    default:
      return 0;
  }
}

// Of integers; others have none.
template <typename T>
void compute_bits(BinaryOp op, const VectorCall& call, const Operand& d, const Operand& a, const Operand& b) {
  if constexpr (std::is_integral_v<T>) {
    if (op == BinaryOp::And)
      elementwise<T, T, T>(call, [](T x, T y) { return x & y; }, d, a, b);
    else
      elementwise<T, T, T>(call, [](T x, T y) { return x | y; }, d, a, b);
  }
}

template <typename C>
C relu(C x) {
  return x < 0 ? C(0) : x;
}

// Those that take the destination as a third source. T: element, C: what it computes in. S: element of the sources,
// where it is another.
template <typename T, typename S>
void compute_with_destination(BinaryOp op, const VectorCall& call, const Operand& d, const Operand& a,
                              const Operand& b) {
  using C = compute_t<T>;
  auto each = [&](auto f) { elementwise<T, T, S, S>(call, f, d, d, a, b); };
  if (op == BinaryOp::MulAddDst) return each([](C o, C x, C y) { return x * y + o; });
  if (op == BinaryOp::FusedMulAdd) return each([](C o, C x, C y) { return x * o + y; });
  each([](C o, C x, C y) { return relu<C>(static_cast<C>(x * o + y)); });
}

template <typename T, typename S = T>
void compute_binary(BinaryOp op, const VectorCall& call, const Operand& d, const Operand& a, const Operand& b) {
  using C = compute_t<T>;
  auto each = [&](auto f) { elementwise<T, S, S>(call, f, d, a, b); };
  switch (op) {
    case BinaryOp::Add:
      return each([](C x, C y) { return x + y; });
    case BinaryOp::Sub:
      return each([](C x, C y) { return x - y; });
    case BinaryOp::Mul:
      return each([](C x, C y) { return x * y; });
    case BinaryOp::Max:
      return each([](C x, C y) { return maximum(x, y); });
    case BinaryOp::Min:
      return each([](C x, C y) { return minimum(x, y); });
    case BinaryOp::AddRelu:
      return each([](C x, C y) { return relu<C>(static_cast<C>(x + y)); });
    case BinaryOp::SubRelu:
      return each([](C x, C y) { return relu<C>(static_cast<C>(x - y)); });
    case BinaryOp::Div:
      if constexpr (std::is_floating_point_v<C>) each([](C x, C y) { return x / y; });
      return;
    case BinaryOp::And:
    case BinaryOp::Or:
      return compute_bits<C>(op, call, d, a, b);
    default:
      return compute_with_destination<T, S>(op, call, d, a, b);
  }
}

// Whose repeats may add up in one destination (AscendC reference, general notes: overlapping addresses).
bool accumulates(BinaryOp op, DType t) {
  constexpr BinaryOp ops[] = {BinaryOp::Add, BinaryOp::Sub,     BinaryOp::Mul,    BinaryOp::Max,
                              BinaryOp::Min, BinaryOp::AddRelu, BinaryOp::SubRelu};
  bool dtype = t == DType::F16 || t == DType::F32 || t == DType::I32;
  return dtype && std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

}  // namespace

void binary(BinaryOp op, const Operand& dst, const Operand& src0, const Operand& src1, const Lanes& lanes,
            const char* api) {
  const void* pc = VNPU_PC;
  const bool widening = op == BinaryOp::MulAddDst && dst.dtype == DType::F32 && src0.dtype == DType::F16;
  if (!(operations_of(dst.dtype) & op_bit(op))) unsupported_dtype(api, dst.dtype, pc);
  if (src0.dtype != dst.dtype && !widening) unsupported_dtype(api, src0.dtype, pc);
  VectorCall call(lanes, api, pc);
  if (accumulates(op, dst.dtype)) call.allow_accumulation();
  call.operand(dst, true, "destination");
  call.operand(src0, false, "first source");
  call.operand(src1, false, "second source");
  switch (dst.dtype) {
    case DType::F32:
      if (widening)
        compute_binary<float, f16>(op, call, dst, src0, src1);
      else
        compute_binary<float>(op, call, dst, src0, src1);
      break;
    case DType::F16:
      compute_binary<f16>(op, call, dst, src0, src1);
      break;
    case DType::I32:
      compute_binary<int32_t>(op, call, dst, src0, src1);
      break;
    case DType::I16:
      compute_binary<int16_t>(op, call, dst, src0, src1);
      break;
    default:
      compute_binary<uint16_t>(op, call, dst, src0, src1);
  }
  call.issue();
  leave_mask(lanes);
}

}  // namespace vnpu
