// Bank conflicts in UB, from addresses.
//
// UB of architecture 2201 (asc-devkit, bank_conflict_ub): address bits 5..8 choose one of 16 bank groups, bits 16..17
// one of the 3 banks in it. In a cycle a bank group reads one row of 32 bytes, and a bank reads or writes one.
#pragma once
#include <cstdint>

#include "chip.h"
#include "vnpu/types.h"

namespace vnpu {

// An operand as UB sees it: the rows of 32 bytes that every repeat touches.
struct BankOperand {
  uint32_t row = 0;  // of the first block of the first repeat
  uint32_t blk_stride = 1, rep_stride = 8;
  uint32_t blocks = 0xff;  // bit b: block b of a repeat is touched
  bool operator==(const BankOperand& o) const {
    return row == o.row && blk_stride == o.blk_stride && rep_stride == o.rep_stride && blocks == o.blocks;
  }
};

// Cycles that an instruction of `repeats` repeats, one every `cycles_per_repeat` cycles, loses to bank conflicts.
// Played cycle by cycle as a pipeline: a repeat is read as soon as its rows can be; its result is written
// `vec_write_delay` cycles later, or when a read that comes first leaves the bank alone.
double bank_stalls(const BankOperand* sources, uint32_t n, const BankOperand& destination, uint32_t repeats,
                   double cycles_per_repeat, const Chip& chip);

}  // namespace vnpu
