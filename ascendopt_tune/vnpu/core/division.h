// Integer divisions without a result, by zero above all. The device has an error bit for them that can be masked, and
// programs that divide by zero where nobody uses the result run there (catlass, examples 06 and 26: the next block's
// tiles, on a core that has no next block). What the device gives is documented nowhere.
#pragma once
#include <cstdint>

#include "guard.h"

namespace vnpu {

// From now on a division of kernel code without a result goes on: quotient and remainder are bytes of `fill`, as what
// nobody has written on the stack is, so that launches with different fills show whether anything depends on them; and
// the core remembers it. x86-64 alone: elsewhere the processor gives 0 by itself, and nobody hears of it.
void divisions_go_on();

// Of this thread: the kernel's code, and what a division without a result gives there.
void divisions_of(const Reach& code, uint8_t fill);

}  // namespace vnpu
