// Vector instructions with two sources. Cycles per 256-byte repeat: asc-devkit, theoretical throughput table, arch
// 2201; data types: AscendC reference, tables of Atlas A2. Integers wrap around: the reference gives no rule.
#include <type_traits>

#include "elementwise.h"

namespace vnpu {
namespace {

constexpr uint32_t bit(BinaryOp op) { return 1u << static_cast<int>(op); }
constexpr uint32_t kBasic =
    bit(BinaryOp::Add) | bit(BinaryOp::Sub) | bit(BinaryOp::Mul) | bit(BinaryOp::Max) | bit(BinaryOp::Min);
constexpr uint32_t kBits = bit(BinaryOp::And) | bit(BinaryOp::Or);
constexpr uint32_t kRelu = bit(BinaryOp::AddRelu) | bit(BinaryOp::SubRelu);

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

// T: element, C: what it computes in. S: element of the sources, where it is another.
template <typename T, typename S = T>
void compute(BinaryOp op, const VectorCall& call, const Operand& d, const Operand& a, const Operand& b) {
  using C = compute_t<T>;
  auto each = [&](auto f) { elementwise<T, S, S>(call, f, d, a, b); };
  auto each_with_dst = [&](auto f) { elementwise<T, T, S, S>(call, f, d, d, a, b); };
  auto relu = [](C x) { return x < 0 ? C(0) : x; };
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
      return each([relu](C x, C y) { return relu(static_cast<C>(x + y)); });
    case BinaryOp::SubRelu:
      return each([relu](C x, C y) { return relu(static_cast<C>(x - y)); });
    case BinaryOp::MulAddDst:
      return each_with_dst([](C o, C x, C y) { return x * y + o; });
    case BinaryOp::FusedMulAdd:
      return each_with_dst([](C o, C x, C y) { return x * o + y; });
    case BinaryOp::FusedMulAddRelu:
      return each_with_dst([relu](C o, C x, C y) { return relu(static_cast<C>(x * o + y)); });
    case BinaryOp::Div:
      if constexpr (std::is_floating_point_v<C>) each([](C x, C y) { return x / y; });
      return;
    case BinaryOp::And:
      if constexpr (std::is_integral_v<C>) each([](C x, C y) { return x & y; });
      return;
    case BinaryOp::Or:
      if constexpr (std::is_integral_v<C>) each([](C x, C y) { return x | y; });
      return;
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
  if (!(operations_of(dst.dtype) & bit(op))) unsupported_dtype(api, dst.dtype, pc);
  if (src0.dtype != dst.dtype && !widening) unsupported_dtype(api, src0.dtype, pc);
  VectorCall call(lanes, api, pc);
  if (accumulates(op, dst.dtype)) call.allow_accumulation();
  call.operand(dst, true, "destination");
  call.operand(src0, false, "first source");
  call.operand(src1, false, "second source");
  switch (dst.dtype) {
    case DType::F32:
      if (widening)
        compute<float, f16>(op, call, dst, src0, src1);
      else
        compute<float>(op, call, dst, src0, src1);
      break;
    case DType::F16:
      compute<f16>(op, call, dst, src0, src1);
      break;
    case DType::I32:
      compute<int32_t>(op, call, dst, src0, src1);
      break;
    case DType::I16:
      compute<int16_t>(op, call, dst, src0, src1);
      break;
    default:
      compute<uint16_t>(op, call, dst, src0, src1);
  }
  call.issue();
  leave_mask(lanes);
}

}  // namespace vnpu
