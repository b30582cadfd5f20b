// Elementwise mathematics and activations of AscendC's advanced API. Most come in four forms: with or without a
// temporary buffer, with or without a number of elements.
#pragma once
#include "vec_mask.h"
#include "vnpu/adv_math.h"

namespace AscendC {

namespace detail {

template <typename T>
ASCENDC_INLINE vnpu::MathArguments math_arguments(const LocalTensor<T>& src, uint32_t count) {
  vnpu::MathArguments a;
  a.src0 = src.operand();
  a.count = count;
  return a;
}
template <typename T>
ASCENDC_INLINE vnpu::MathArguments math_arguments(const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                                                  uint32_t count) {
  vnpu::MathArguments a = math_arguments(src0, count);
  a.src1 = src1.operand();
  return a;
}
ASCENDC_INLINE vnpu::MathArguments with_shared(vnpu::MathArguments a, const LocalTensor<uint8_t>& shared) {
  a.shared = shared.pointer();
  a.shared_bytes = shared.GetSize();
  return a;
}
template <typename T>
ASCENDC_INLINE vnpu::MathArguments with_scalar(vnpu::MathArguments a, const T& scalar) {
  a.scalar = vnpu::to_scalar(scalar);
  a.form = 1;
  return a;
}
ASCENDC_INLINE vnpu::MathArguments in_form(vnpu::MathArguments a, uint8_t form) {
  a.form = form;
  return a;
}
template <typename T>
constexpr uint8_t gelu_form(bool high_precision, bool high_performance) {
  return (high_precision && sizeof(T) == sizeof(half) ? 1 : 0) + (high_performance ? 2 : 0);
}

}  // namespace detail

#define VNPU_MATH_COUNTED(NAME)                                                                            \
  template <typename T, bool isReuseSource = false>                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,               \
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount) {         \
    vnpu::math(vnpu::Math::NAME, dstTensor.operand(),                                                      \
               detail::with_shared(detail::math_arguments(srcTensor, calCount), sharedTmpBuffer), #NAME);  \
  }                                                                                                        \
  template <typename T, bool isReuseSource = false>                                                        \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,               \
                           const uint32_t calCount) {                                                      \
    vnpu::math(vnpu::Math::NAME, dstTensor.operand(), detail::math_arguments(srcTensor, calCount), #NAME); \
  }
#define VNPU_MATH(NAME)                                                                        \
  VNPU_MATH_COUNTED(NAME)                                                                      \
  template <typename T, bool isReuseSource = false>                                            \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,   \
                           const LocalTensor<uint8_t>& sharedTmpBuffer) {                      \
    NAME<T, isReuseSource>(dstTensor, srcTensor, sharedTmpBuffer, srcTensor.GetSize());        \
  }                                                                                            \
  template <typename T, bool isReuseSource = false>                                            \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor) { \
    NAME<T, isReuseSource>(dstTensor, srcTensor, srcTensor.GetSize());                         \
  }
VNPU_MATH(Acos)
VNPU_MATH(Acosh)
VNPU_MATH(Asin)
VNPU_MATH(Asinh)
VNPU_MATH(Atan)
VNPU_MATH(Atanh)
VNPU_MATH(Cos)
VNPU_MATH(Cosh)
VNPU_MATH(Erf)
VNPU_MATH(Erfc)
VNPU_MATH(Frac)
VNPU_MATH(Log2)
VNPU_MATH(Sigmoid)
VNPU_MATH(Sign)
VNPU_MATH(Sin)
VNPU_MATH(Sinh)
VNPU_MATH(Tan)
VNPU_MATH(Tanh)
VNPU_MATH(Trunc)
VNPU_MATH_COUNTED(Ceil)
VNPU_MATH_COUNTED(Digamma)
VNPU_MATH_COUNTED(Floor)
VNPU_MATH_COUNTED(Lgamma)
VNPU_MATH_COUNTED(Round)
#undef VNPU_MATH
#undef VNPU_MATH_COUNTED

// Log and Log10 need no temporary buffer.
#define VNPU_LOG(NAME)                                                                                            \
  template <typename T, bool isReuseSource = false>                                                               \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, uint32_t calCount) { \
    vnpu::math(vnpu::Math::NAME, dstTensor.operand(), detail::math_arguments(srcTensor, calCount), #NAME);        \
  }                                                                                                               \
  template <typename T, bool isReuseSource = false>                                                               \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor) {                    \
    NAME<T, isReuseSource>(dstTensor, srcTensor, srcTensor.GetSize());                                            \
  }
VNPU_LOG(Log)
VNPU_LOG(Log10)
#undef VNPU_LOG

// The Exp of the advanced API: a Taylor expansion of the given order (0: the plain instruction).
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
ASCENDC_INLINE void Exp(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t calCount) {
  vnpu::math(vnpu::Math::ExpTaylor, dstLocal.operand(),
             detail::in_form(detail::math_arguments(srcLocal, calCount), taylorExpandLevel), "Exp");
}
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
ASCENDC_INLINE void Exp(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount) {
  vnpu::math(vnpu::Math::ExpTaylor, dstLocal.operand(),
             detail::in_form(detail::with_shared(detail::math_arguments(srcLocal, calCount), sharedTmpBuffer),
                             taylorExpandLevel),
             "Exp");
}

#define VNPU_CLAMP(NAME)                                                                                              \
  template <typename T, bool isReuseSource = false>                                                                   \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                          \
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const T scalar, const uint32_t calCount) {    \
    vnpu::math(vnpu::Math::NAME, dstTensor.operand(),                                                                 \
               detail::with_scalar(detail::with_shared(detail::math_arguments(srcTensor, calCount), sharedTmpBuffer), \
                                   scalar),                                                                           \
               #NAME);                                                                                                \
  }                                                                                                                   \
  template <typename T, bool isReuseSource = false>                                                                   \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const T scalar,          \
                           const uint32_t calCount) {                                                                 \
    vnpu::math(vnpu::Math::NAME, dstTensor.operand(),                                                                 \
               detail::with_scalar(detail::math_arguments(srcTensor, calCount), scalar), #NAME);                      \
  }
VNPU_CLAMP(ClampMax)
VNPU_CLAMP(ClampMin)
#undef VNPU_CLAMP

#define VNPU_GELU(NAME)                                                                                               \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                                     \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                            \
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t dataSize) {                    \
    vnpu::math(vnpu::Math::NAME, dstLocal.operand(),                                                                  \
               detail::in_form(detail::with_shared(detail::math_arguments(srcLocal, dataSize), sharedTmpBuffer),      \
                               detail::gelu_form<T>(highPrecision, highPerformance)),                                 \
               #NAME);                                                                                                \
  }                                                                                                                   \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                                     \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t dataSize) { \
    vnpu::math(vnpu::Math::NAME, dstLocal.operand(),                                                                  \
               detail::in_form(detail::math_arguments(srcLocal, dataSize),                                            \
                               detail::gelu_form<T>(highPrecision, highPerformance)),                                 \
               #NAME);                                                                                                \
  }
VNPU_GELU(Gelu)
VNPU_GELU(FasterGelu)
VNPU_GELU(FasterGeluV2)
#undef VNPU_GELU

template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Silu(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint32_t dataSize) {
  vnpu::math(vnpu::Math::Silu, dstLocal.operand(), detail::math_arguments(srcLocal, dataSize), "Silu");
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Swish(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint32_t dataSize,
                          const T scalarValue) {
  vnpu::math(vnpu::Math::Swish, dstLocal.operand(),
             detail::with_scalar(detail::math_arguments(srcLocal, dataSize), scalarValue), "Swish");
}

// Two tensors of equal size; dst = f(src0, src1).
#define VNPU_MATH_BINARY(NAME)                                                                                         \
  template <typename T, bool isReuseSource = false>                                                                    \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,                          \
                           const LocalTensor<T>& src1Tensor, const LocalTensor<uint8_t>& sharedTmpBuffer,              \
                           const uint32_t calCount) {                                                                  \
    vnpu::math(vnpu::Math::NAME, dstTensor.operand(),                                                                  \
               detail::with_shared(detail::math_arguments(src0Tensor, src1Tensor, calCount), sharedTmpBuffer), #NAME); \
  }                                                                                                                    \
  template <typename T, bool isReuseSource = false>                                                                    \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,                          \
                           const LocalTensor<T>& src1Tensor, const uint32_t calCount) {                                \
    vnpu::math(vnpu::Math::NAME, dstTensor.operand(), detail::math_arguments(src0Tensor, src1Tensor, calCount),        \
               #NAME);                                                                                                 \
  }                                                                                                                    \
  template <typename T, bool isReuseSource = false>                                                                    \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,                          \
                           const LocalTensor<T>& src1Tensor, const LocalTensor<uint8_t>& sharedTmpBuffer) {            \
    NAME<T, isReuseSource>(dstTensor, src0Tensor, src1Tensor, sharedTmpBuffer, src0Tensor.GetSize());                  \
  }                                                                                                                    \
  template <typename T, bool isReuseSource = false>                                                                    \
  ASCENDC_INLINE void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,                          \
                           const LocalTensor<T>& src1Tensor) {                                                         \
    NAME<T, isReuseSource>(dstTensor, src0Tensor, src1Tensor, src0Tensor.GetSize());                                   \
  }
VNPU_MATH_BINARY(Fmod)
VNPU_MATH_BINARY(GeGLU)
VNPU_MATH_BINARY(Power)
VNPU_MATH_BINARY(ReGlu)
VNPU_MATH_BINARY(Xor)
#undef VNPU_MATH_BINARY

// Power with a scalar exponent or a scalar base.
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Power(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const T& src1Scalar,
                          const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t calCount) {
  vnpu::math(vnpu::Math::Power, dstTensor.operand(),
             detail::with_scalar(detail::with_shared(detail::math_arguments(src0Tensor, calCount), sharedTmpBuffer),
                                 src1Scalar),
             "Power");
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Power(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const T& src1Scalar,
                          uint32_t calCount) {
  vnpu::math(vnpu::Math::Power, dstTensor.operand(),
             detail::with_scalar(detail::math_arguments(src0Tensor, calCount), src1Scalar), "Power");
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Power(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const T& src1Scalar,
                          const LocalTensor<uint8_t>& sharedTmpBuffer) {
  Power<T, isReuseSource>(dstTensor, src0Tensor, src1Scalar, sharedTmpBuffer, src0Tensor.GetSize());
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Power(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const T& src1Scalar) {
  Power<T, isReuseSource>(dstTensor, src0Tensor, src1Scalar, src0Tensor.GetSize());
}
namespace detail {
template <typename T>
ASCENDC_INLINE vnpu::MathArguments power_of_scalar(const T& base, const LocalTensor<T>& exponent, uint32_t count) {
  vnpu::MathArguments a = with_scalar(math_arguments(exponent, count), base);
  a.src1 = a.src0;
  a.src0 = {};
  return a;
}
}  // namespace detail
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Power(const LocalTensor<T>& dstTensor, const T& src0Scalar, const LocalTensor<T>& src1Tensor,
                          const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t calCount) {
  vnpu::math(vnpu::Math::Power, dstTensor.operand(),
             detail::with_shared(detail::power_of_scalar(src0Scalar, src1Tensor, calCount), sharedTmpBuffer), "Power");
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Power(const LocalTensor<T>& dstTensor, const T& src0Scalar, const LocalTensor<T>& src1Tensor,
                          uint32_t calCount) {
  vnpu::math(vnpu::Math::Power, dstTensor.operand(), detail::power_of_scalar(src0Scalar, src1Tensor, calCount),
             "Power");
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Power(const LocalTensor<T>& dstTensor, const T& src0Scalar, const LocalTensor<T>& src1Tensor,
                          const LocalTensor<uint8_t>& sharedTmpBuffer) {
  Power<T, isReuseSource>(dstTensor, src0Scalar, src1Tensor, sharedTmpBuffer, src1Tensor.GetSize());
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void Power(const LocalTensor<T>& dstTensor, const T& src0Scalar, const LocalTensor<T>& src1Tensor) {
  Power<T, isReuseSource>(dstTensor, src0Scalar, src1Tensor, src1Tensor.GetSize());
}

// dst = src0 * src1 / (1 + exp(-scalarValue * src1))
namespace detail {
template <typename T>
ASCENDC_INLINE vnpu::MathArguments swiglu(const LocalTensor<T>& src0, const LocalTensor<T>& src1, float scalar,
                                          uint32_t count) {
  return with_scalar(math_arguments(src0, src1, count), scalar);
}
}  // namespace detail
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void SwiGLU(LocalTensor<T>& dstTensor, LocalTensor<T>& srcTensor0, LocalTensor<T>& srcTensor1,
                           const float& scalarValue) {
  vnpu::math(vnpu::Math::SwiGLU, dstTensor.operand(),
             detail::swiglu(srcTensor0, srcTensor1, scalarValue, srcTensor0.GetSize()), "SwiGLU");
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void SwiGLU(LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                           const LocalTensor<T>& srcTensor1, const float& scalarValue,
                           const LocalTensor<uint8_t>& sharedTmpBuffer) {
  vnpu::math(
      vnpu::Math::SwiGLU, dstTensor.operand(),
      detail::with_shared(detail::swiglu(srcTensor0, srcTensor1, scalarValue, srcTensor0.GetSize()), sharedTmpBuffer),
      "SwiGLU");
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void SwiGLU(LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                           const LocalTensor<T>& srcTensor1, const float& scalarValue, const uint32_t calCount) {
  vnpu::math(vnpu::Math::SwiGLU, dstTensor.operand(), detail::swiglu(srcTensor0, srcTensor1, scalarValue, calCount),
             "SwiGLU");
}
template <typename T, bool isReuseSource = false>
ASCENDC_INLINE void SwiGLU(LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                           const LocalTensor<T>& srcTensor1, const float& scalarValue,
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount) {
  vnpu::math(vnpu::Math::SwiGLU, dstTensor.operand(),
             detail::with_shared(detail::swiglu(srcTensor0, srcTensor1, scalarValue, calCount), sharedTmpBuffer),
             "SwiGLU");
}

}  // namespace AscendC
