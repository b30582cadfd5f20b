// Vector instructions with one vector and one scalar source. Cycles per 256-byte repeat: asc-devkit, theoretical
// throughput table, arch 2201 (128 or 64 elements a cycle: one repeat a cycle).
#include "vnpu/scalar_ops.h"

#include <string>

#include "elementwise.h"

namespace vnpu {
namespace {

// T: element, C: what it computes in.
template <typename T, typename C>
bool arithmetic(ScalarOp op, const VectorCall& call, const Operand& d, const Operand& s, C v) {
  auto each = [&](auto f) {
    elementwise<T, T>(call, f, d, s);
    return true;
  };
  switch (op) {
    case ScalarOp::Adds:
      return each([v](C x) { return static_cast<C>(x + v); });
    case ScalarOp::Muls:
      return each([v](C x) { return static_cast<C>(x * v); });
    case ScalarOp::Maxs:
      return each([v](C x) { return maximum(x, v); });
    case ScalarOp::Mins:
      return each([v](C x) { return minimum(x, v); });
    case ScalarOp::LeakyRelu:
      if constexpr (std::is_floating_point_v<C>) return each([v](C x) { return x >= 0 ? x : x * v; });
      return false;
    default:
      return false;
  }
}

// Shifts by the width of the type are allowed and shift everything out.
template <typename T>
bool shift(ScalarOp op, const VectorCall& call, const Operand& d, const Operand& s, int64_t v) {
  int n = static_cast<int>(v);
  auto each = [&](auto f) {
    elementwise<T, T>(call, f, d, s);
    return true;
  };
  switch (op) {
    case ScalarOp::ShiftLeft:
      return each([n](T x) { return static_cast<T>(static_cast<uint64_t>(x) << n); });
    case ScalarOp::ShiftRight:
      return each([n](T x) { return static_cast<T>(static_cast<int64_t>(x) >> n); });
    case ScalarOp::ShiftRightRound:
      if (std::is_unsigned_v<T>) return shift<T>(ScalarOp::ShiftRight, call, d, s, v);  // signed ones alone are rounded
      return each([n](T x) { return static_cast<T>((static_cast<int64_t>(x) + (n ? 1ll << (n - 1) : 0)) >> n); });
    default:
      return false;
  }
}

bool is_shift(ScalarOp op) {
  return op == ScalarOp::ShiftLeft || op == ScalarOp::ShiftRight || op == ScalarOp::ShiftRightRound;
}

bool compute_scalar(ScalarOp op, const VectorCall& call, const Operand& d, const Operand& s, const Scalar& v) {
  if (is_shift(op)) {
    switch (d.dtype) {
      case DType::I16:
        return shift<int16_t>(op, call, d, s, v.i);
      case DType::U16:
        return shift<uint16_t>(op, call, d, s, v.i);
      case DType::I32:
        return shift<int32_t>(op, call, d, s, v.i);
      case DType::U32:
        return shift<uint32_t>(op, call, d, s, v.i);
      default:
        return false;
    }
  }
  switch (d.dtype) {
    case DType::F32:
      return arithmetic<float, float>(op, call, d, s, static_cast<float>(v.f));
    case DType::F16:
      return arithmetic<f16, float>(op, call, d, s, static_cast<float>(v.f));
    case DType::I16:
      return arithmetic<int16_t, int16_t>(op, call, d, s, static_cast<int16_t>(v.i));
    case DType::I32:
      return arithmetic<int32_t, int32_t>(op, call, d, s, static_cast<int32_t>(v.i));
    default:
      return false;
  }
}

}  // namespace

void scalar_op(ScalarOp op, const Operand& dst, const Operand& src, const Scalar& scalar, const Lanes& lanes,
               const char* api) {
  const void* pc = VNPU_PC;
  if (is_shift(op)) {
    int64_t width = dtype_size(dst.dtype) * 8;
    if (scalar.i < 0 || scalar.i > width)
      throw KernelError(KernelError::kMisuse,
                        std::string(api) + ": a shift by " + std::to_string(scalar.i) + " is outside [0, " +
                            std::to_string(width) + "]",
                        api, pc);
  }
  VectorCall call(lanes, api, pc);
  call.operand(dst, true, "destination");
  call.operand(src, false, "source");
  if (!compute_scalar(op, call, dst, src, scalar)) unsupported_dtype(api, dst.dtype, pc);
  call.issue();
  leave_mask(lanes);
}

void axpy(const Operand& dst, const Operand& src, const Scalar& scalar, const Lanes& lanes) {
  const void* pc = VNPU_PC;
  const char* api = "Axpy";
  VectorCall call(lanes, api, pc);
  call.operand(dst, true, "destination");
  call.operand(src, false, "source");
  float v = static_cast<float>(scalar.f);
  auto f = [v](float out, float x) { return x * v + out; };
  if (dst.dtype == DType::F32 && src.dtype == DType::F32)
    elementwise<float, float, float>(call, f, dst, dst, src);
  else if (dst.dtype == DType::F16 && src.dtype == DType::F16)
    elementwise<f16, f16, f16>(call, f, dst, dst, src);
  else if (dst.dtype == DType::F32 && src.dtype == DType::F16)
    elementwise<float, float, f16>(call, f, dst, dst, src);
  else
    unsupported_dtype(api, src.dtype, pc);
  call.issue();
  leave_mask(lanes);
}

}  // namespace vnpu
