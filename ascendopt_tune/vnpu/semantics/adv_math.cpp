// Elementwise functions made of several vector instructions.
//
// Values: the function in float, to nearest (libm, within an ulp), rounded to half for half tensors. Time: that
// of the instructions they are made of (math_recipes.h).
#include "vnpu/adv_math.h"

#include "elementwise.h"
#include "fast_math.h"
#include "math_recipes.h"

namespace vnpu {
namespace {

// Nearly all end with a barrier, so that what comes next is ordered (asc-devkit, impl/adv_api/detail/math and
// activation, what is for architecture 2201). These don't.
bool ends_open(Math op, DType t) {
  switch (op) {
    case Math::Acos:
    case Math::ClampMax:
    case Math::ClampMin:
    case Math::Log:
    case Math::Log10:
      return true;
    case Math::Floor:
    case Math::Log2:
      return t == DType::F32;
    case Math::Atanh:
    case Math::Lgamma:
      return t == DType::F16;
    default:
      return false;
  }
}

float gelu(float x) { return x * sigmoid_lane(1.59576912f * (x + 0.044715f * x * x * x)); }
// x * (sgn(x) * (-0.1444 * (min(|0.7071 x|, 1.769) - 1.769)^2 + 0.5) + 0.5), sgn(x) = (x + 1e-12) / |x + 1e-12|
float faster_gelu_v2(float x) {
  float sign = (x + 1e-12f) / std::fabs(x + 1e-12f), d = std::min(std::fabs(0.7071f * x), 1.769f) - 1.769f;
  return x * (sign * (-0.1444f * d * d + 0.5f) + 0.5f);
}

// The derivative of lgamma: moved up to where its series is exact, mirrored below 0; asc-devkit's NaN where it has
// poles below 0, or where floats have no fractions (digamma_common_impl.h).
float digamma(float x) {
  const auto above = [](double y) {
    double sum = 0;
    for (; y < 10; y += 1) sum -= 1 / y;
    const double z = 1 / (y * y);
    const double series =
        z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760))))));
    return sum + std::log(y) - 0.5 / y - series;
  };
  if (!(x < 0)) return static_cast<float>(above(x));
  if (x <= -8388608.0f || x == std::floor(x)) return std::nanf("");
  const double part = static_cast<double>(x) - std::floor(static_cast<double>(x));
  return static_cast<float>(above(1 - static_cast<double>(x)) - M_PI / std::tan(M_PI * part));
}

// A function of one source: `u(f)` computes destination = f(source), lane by lane; `v` is the immediate operand.
template <typename T>
struct Unary {
  const VectorCall& call;
  const Operand &d, &s;
  const float v;

  template <typename F>
  void operator()(F f) const {
    elementwise<T, T>(call, f, d, s);
  }
};

template <typename T>
struct UnaryBody {
  Math op;
  void (*compute)(const Unary<T>&);
};

template <typename T>
constexpr UnaryBody<T> kUnary[] = {
    {Math::Acos, [](const Unary<T>& u) { u([](float x) { return std::acos(x); }); }},
    {Math::Acosh, [](const Unary<T>& u) { u([](float x) { return std::acosh(x); }); }},
    {Math::Asin, [](const Unary<T>& u) { u([](float x) { return std::asin(x); }); }},
    {Math::Asinh, [](const Unary<T>& u) { u([](float x) { return std::asinh(x); }); }},
    {Math::Atan, [](const Unary<T>& u) { u([](float x) { return std::atan(x); }); }},
    {Math::Atanh, [](const Unary<T>& u) { u([](float x) { return std::atanh(x); }); }},
    {Math::Ceil, [](const Unary<T>& u) { u([](float x) { return std::ceil(x); }); }},
    {Math::ClampMax, [](const Unary<T>& u) { u([v = u.v](float x) { return minimum(x, v); }); }},
    {Math::ClampMin, [](const Unary<T>& u) { u([v = u.v](float x) { return maximum(x, v); }); }},
    {Math::Cos, [](const Unary<T>& u) { u([](float x) { return std::cos(x); }); }},
    {Math::Cosh, [](const Unary<T>& u) { u([](float x) { return std::cosh(x); }); }},
    {Math::Digamma, [](const Unary<T>& u) { u([](float x) { return digamma(x); }); }},
    {Math::Erf, [](const Unary<T>& u) { u([](float x) { return std::erf(x); }); }},
    {Math::Erfc, [](const Unary<T>& u) { u([](float x) { return std::erfc(x); }); }},
    {Math::ExpTaylor, [](const Unary<T>& u) { u([](float x) { return exp_lane(x); }); }},
    {Math::FasterGelu, [](const Unary<T>& u) { u([](float x) { return x * sigmoid_lane(1.702f * x); }); }},
    {Math::FasterGeluV2, [](const Unary<T>& u) { u([](float x) { return faster_gelu_v2(x); }); }},
    {Math::Floor, [](const Unary<T>& u) { u([](float x) { return std::floor(x); }); }},
    {Math::Frac, [](const Unary<T>& u) { u([](float x) { return x - std::trunc(x); }); }},
    {Math::Gelu, [](const Unary<T>& u) { u([](float x) { return gelu(x); }); }},
    {Math::Lgamma, [](const Unary<T>& u) { u([](float x) { return std::lgamma(x); }); }},
    {Math::Log, [](const Unary<T>& u) { u([](float x) { return log_lane(x); }); }},
    {Math::Log10, [](const Unary<T>& u) { u([](float x) { return std::log10(x); }); }},
    {Math::Log2, [](const Unary<T>& u) { u([](float x) { return std::log2(x); }); }},
    {Math::Round, [](const Unary<T>& u) { u([](float x) { return std::rint(x); }); }},
    {Math::Sigmoid, [](const Unary<T>& u) { u([](float x) { return sigmoid_lane(x); }); }},
    {Math::Sign, [](const Unary<T>& u) { u([](float x) { return static_cast<float>((x > 0) - (x < 0)); }); }},
    {Math::Silu, [](const Unary<T>& u) { u([](float x) { return x * sigmoid_lane(x); }); }},
    {Math::Sin, [](const Unary<T>& u) { u([](float x) { return std::sin(x); }); }},
    {Math::Sinh, [](const Unary<T>& u) { u([](float x) { return std::sinh(x); }); }},
    {Math::Swish, [](const Unary<T>& u) { u([v = u.v](float x) { return x * sigmoid_lane(v * x); }); }},
    {Math::Tan, [](const Unary<T>& u) { u([](float x) { return std::tan(x); }); }},
    {Math::Tanh, [](const Unary<T>& u) { u([](float x) { return tanh_lane(x); }); }},
    {Math::Trunc, [](const Unary<T>& u) { u([](float x) { return std::trunc(x); }); }},
};

template <typename T>
bool unary_float(Math op, const VectorCall& call, const Operand& d, const MathArguments& a) {
  for (const UnaryBody<T>& body : kUnary<T>)
    if (body.op == op) {
      body.compute({call, d, a.src0, static_cast<float>(a.scalar.f)});
      return true;
    }
  return false;
}

// f(first, second) where either may be the scalar.
template <typename T, typename F>
bool both(const VectorCall& call, const Operand& d, const MathArguments& a, compute_t<T> v, F f) {
  using C = compute_t<T>;
  if (a.src0.dtype == DType::None)
    elementwise<T, T>(call, [f, v](C y) { return f(v, y); }, d, a.src1);
  else if (a.src1.dtype == DType::None)
    elementwise<T, T>(call, [f, v](C x) { return f(x, v); }, d, a.src0);
  else
    elementwise<T, T, T>(call, f, d, a.src0, a.src1);
  return true;
}

template <typename T>
bool binary_float(Math op, const VectorCall& call, const Operand& d, const MathArguments& a) {
  const float v = static_cast<float>(a.scalar.f);
  switch (op) {
    case Math::Fmod:
      return both<T>(call, d, a, v, [](float x, float y) { return std::fmod(x, y); });
    case Math::GeGLU:
      return both<T>(call, d, a, v, [](float x, float y) { return x * gelu(y); });
    case Math::Power:
      return both<T>(call, d, a, v, [](float x, float y) { return std::pow(x, y); });
    case Math::ReGlu:
      return both<T>(call, d, a, v, [](float x, float y) { return x * (y < 0 ? 0.0f : y); });
    case Math::SwiGLU:
      return both<T>(call, d, a, v, [v](float x, float y) { return x * y * sigmoid_lane(v * y); });
    default:
      return false;
  }
}

int32_t power(int32_t x, int32_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
  uint32_t result = 1, base = static_cast<uint32_t>(x);
  for (auto n = static_cast<uint32_t>(y); n; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return static_cast<int32_t>(result);
}

bool compute_math(Math op, const VectorCall& call, const Operand& d, const MathArguments& a) {
  switch (d.dtype) {
    case DType::F32:
      return unary_float<float>(op, call, d, a) || binary_float<float>(op, call, d, a);
    case DType::F16:
      return unary_float<f16>(op, call, d, a) || binary_float<f16>(op, call, d, a);
    case DType::I32:
      return op == Math::Power && both<int32_t>(call, d, a, static_cast<int32_t>(a.scalar.i), power);
    case DType::I16:
    case DType::U16:
      return op == Math::Xor &&
             both<uint16_t>(call, d, a, 0, [](uint16_t x, uint16_t y) { return static_cast<uint16_t>(x ^ y); });
    default:
      return false;
  }
}

}  // namespace

void math(Math op, const Operand& dst, const MathArguments& a, const char* api) {
  const void* pc = VNPU_PC;
  if (a.count == 0) return;
  Lanes lanes;
  lanes.count = a.count;
  VectorCall call(lanes, api, pc);
  call.operand(dst, true, "destination");
  if (a.src0.dtype != DType::None) call.operand(a.src0, false, "first source");
  if (a.src1.dtype != DType::None) call.operand(a.src1, false, "second source");
  if (a.shared_bytes) call.touch(a.shared, a.shared_bytes, true, "temporary buffer");
  if (!compute_math(op, call, dst, a)) unsupported_dtype(api, dst.dtype, pc);
  const MathCost cost = math_cost(op, dst, a, call.core());
  call.issue(cost.work);
  // Those between instructions would order what comes next, where none is behind the last.
  for (uint32_t i = 0; i < cost.barriers && !ends_open(op, dst.dtype); i++) call.core().barrier(Pipe::V);
  leave_mask(lanes);
}

}  // namespace vnpu
