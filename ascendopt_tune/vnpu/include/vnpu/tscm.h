// L1 of a vector core, which is its cube core's: what it copies there it asks the cube core for (AscendC reference,
// TSCM).
#pragma once
#include <cstdint>

#include "cube.h"
#include "device.h"
#include "matmul.h"

namespace vnpu {

// Whether this is a vector core with a cube core beside it. One that has an object of the high-level Matmul has
// somebody to ask, and says so.
bool asks_for_l1();
void expect_to_ask(const Matmul& object);
// `bytes` at L1's end, below what the core has there already: the group's vector cores have one piece beside the
// other, or one `together`.
void* l1_room(uint32_t bytes, bool together);
// Copies there: from global memory, and from the Unified Buffer by way of global memory. Who has the cube core multiply
// afterwards finds them done; what the cube core still reads there has to be waited for first.
void ask_for_l1(void* dst, const void* src, const CopyShape& shape, const char* api);
void ask_for_l1(void* dst, const void* src, const RowsToTiles& shape, const char* api);
void ask_for_l1_from_local(void* dst, const void* src, const CopyShape& shape, const char* api);
void ask_for_l1_from_local(void* dst, const void* src, const RowsToTiles& shape, const char* api);

}  // namespace vnpu
