// Vector instructions with one source.
#pragma once
#include "device.h"

namespace vnpu {

enum class UnaryOp : uint8_t { Exp, Ln, Abs, Reciprocal, Rsqrt, Sqrt, Relu, Not };
void unary(UnaryOp op, const Operand& dst, const Operand& src, const Lanes& lanes, const char* api);

}  // namespace vnpu
