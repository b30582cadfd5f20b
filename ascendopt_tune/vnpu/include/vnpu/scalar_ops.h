// Vector instructions with one vector and one scalar source.
#pragma once
#include "device.h"

namespace vnpu {

enum class ScalarOp : uint8_t { Adds, Muls, Maxs, Mins, LeakyRelu, ShiftLeft, ShiftRight, ShiftRightRound };
void scalar_op(ScalarOp op, const Operand& dst, const Operand& src, const Scalar& scalar, const Lanes& lanes,
               const char* api);
// dst += src * scalar; the destination may be float with half sources.
void axpy(const Operand& dst, const Operand& src, const Scalar& scalar, const Lanes& lanes);

}  // namespace vnpu
