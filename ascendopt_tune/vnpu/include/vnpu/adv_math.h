// Elementwise functions made of several vector instructions (AscendC's advanced API, mathematics and activations).
#pragma once
#include "device.h"

namespace vnpu {

enum class Math : uint8_t {
  Acos,
  Acosh,
  Asin,
  Asinh,
  Atan,
  Atanh,
  Ceil,
  ClampMax,
  ClampMin,
  Cos,
  Cosh,
  Digamma,
  Erf,
  Erfc,
  ExpTaylor,
  FasterGelu,
  FasterGeluV2,
  Floor,
  Fmod,
  Frac,
  GeGLU,
  Gelu,
  Lgamma,
  Log,
  Log10,
  Log2,
  Power,
  ReGlu,
  Round,
  Sigmoid,
  Sign,
  Silu,
  Sin,
  Sinh,
  SwiGLU,
  Swish,
  Tan,
  Tanh,
  Trunc,
  Xor,
  kCount,
};

// What an advanced function takes beside its destination.
struct MathArguments {
  Operand src0, src1;  // dtype None: not a tensor, `scalar` stands in its place
  Scalar scalar;
  const void* shared = nullptr;  // temporary buffer, null: the free end of UB
  uint32_t shared_bytes = 0;
  uint32_t count = 0;  // elements
  // Which of its ways a function goes. Gelu and its kin: 1 half by way of float, 2 without a division, 3 both; Exp:
  // order of its expansion, 0 none; Power: 1 one source is a scalar.
  uint8_t form = 0;
};
void math(Math op, const Operand& dst, const MathArguments& arguments, const char* api);

}  // namespace vnpu
