// Messages between a vector core of a group and its cube core, for code that is made of them (the high-level Matmul of
// other headers in mixed kernels): what the device moves through global memory is handed over here.
#pragma once
#include <cstdint>

#include "types.h"

namespace vnpu {

// Of a vector core: behind what it has stored and copied so far.
void message_send(const void* message, uint32_t bytes);
// Of a cube core: the next one of vector core `sub` of its group, of at most `bytes`; false: none is there. Who looks
// in vain again and again gives way to the other cores.
bool message_receive(uint32_t sub, void* message, uint32_t bytes);
// What became of it: it is the next one once more, or it is done.
void message_put_back(uint32_t sub, const void* message, uint32_t bytes);
void message_done();

// Global memory of a vector core for what messages speak of, from an area of `kMessageRoom` bytes that is used round
// and round; `end` names it to the cube core, which gives it back up to there. Waits until there is room.
constexpr uint32_t kMessageRoom = 192 << 10;
void* message_room(uint32_t bytes, int32_t* end);
void message_room_done(uint32_t sub, int32_t end);

// A flag of the cube core for vector core `sub`, when `pipe` is through; the vector core waits for it.
void notice_raise(uint32_t sub, Pipe pipe, uint32_t id);
void notice_await(uint32_t id);

// An object that multiplies begins to allocate in L1 and L0C, where those before it have, too; L0A, L0B and the table
// of biases are each one's as a whole. `l1`, `l0c`: bytes that all of them share; `second`: it takes the second half.
void share_begin(uint32_t l1, uint32_t l0c, bool second);
void share_end();

}  // namespace vnpu
