// What a high-level Matmul of any make costs before its first copy.
#pragma once

namespace vnpu {

// An object is started: the scalar work of the core's first one, and without constants that of reading the tiling.
// Returns whether it is the first.
bool begin_matmul(bool constant_tiling);

}  // namespace vnpu
