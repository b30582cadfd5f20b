// What CANN's compiler has for arrays of a kernel's own, which its scalar unit keeps on the stack.
#pragma once
#include <cstdint>
#include <cstring>

#include "types.h"

// `size` bytes, 64 at a time on the device. Like everything that a kernel reads through a plain pointer, its accesses
// are not followed, nor do they cost modelled time.
ASCENDC_INLINE void copy_data_align64(uint8_t* dst, const uint8_t* src, size_t size) { std::memcpy(dst, src, size); }
