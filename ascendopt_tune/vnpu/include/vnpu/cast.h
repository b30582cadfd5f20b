// Vector instructions that convert between data types.
#pragma once
#include "device.h"

namespace vnpu {

// Numbered as AscendC's RoundMode. None: to nearest even where precision is lost.
enum class Round : uint8_t { None = 0, Rint, Floor, Ceil, Away, Trunc, Odd };
void cast(const Operand& dst, const Operand& src, Round round, const Lanes& lanes);

// The DEQSCALE register, bit by bit, and what CastDequant makes of it.
void set_dequant(uint64_t bits);
struct DequantForm {
  bool vector = true;      // one (scale, offset, sign) per lane of a block, read from a table in UB
  bool half_block = true;  // 8-bit results go to the upper 16 bytes of their block
};
void cast_dequant(const Operand& dst, const Operand& src, const DequantForm& form, const Lanes& lanes);

// dst = convert(op(src0, src1)), 8-bit integers saturate.
enum class FusedCast : uint8_t { AddRelu, SubRelu, Mul };
void fused_cast(FusedCast op, const Operand& dst, const Operand& src0, const Operand& src1, const Lanes& lanes,
                const char* api);

}  // namespace vnpu
