// Orders whose time is in that of what they belong to: they cost none of their own.
#pragma once
#include "types.h"

namespace vnpu {

// A barrier of one pipe.
void order_within(Pipe pipe);
// Cube cores, nothing on others: the flags that say L0A, L0B and the table of biases are free, ids 0 to 2 from M to
// MTE1, are taken and raised; and taken down again.
void raise_matrix_flags();
void take_matrix_flags_down();
void count_matrix_flags();  // what it costs to raise them

}  // namespace vnpu
