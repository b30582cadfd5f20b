// What the Matmul of other headers is led to (vnpu_matmul_headers.h, vnpu_matmul_messages.h): memory and flags at its
// begin, and the messages of mixed kernels.
#pragma once
#include "pipe.h"
#include "vnpu/matmul_begin.h"
#include "vnpu/messages.h"

namespace AscendC::matmul_api::matmul_inner {

// An object begins to allocate its buffers: in L1 and L0C where the others of the core have theirs (`l1`, `l0c` bytes).
// The flags that say L0A, L0B and the table of biases are free the TPipe has raised; their time is counted here.
ASCENDC_INLINE void begin_other_matmul(uint32_t l1, uint32_t l0c, bool second_half) {
  if (vnpu::begin_matmul(true)) vnpu::count_matrix_flags();
  vnpu::share_begin(l1, l0c, second_half);
}
ASCENDC_INLINE void end_other_matmul() { vnpu::share_end(); }
ASCENDC_INLINE void read_tiling() { vnpu::begin_matmul(false); }
// The flags with which it gives L0A, L0B and the table back; nobody has to have waited for the last ones.
template <HardEvent event>
ASCENDC_INLINE void set_flag_of_other(int32_t id) {
  if constexpr (event == HardEvent::M_MTE1)
    vnpu::set_freed_flag(vnpu::Pipe::M, vnpu::Pipe::MTE1, id);
  else
    SetFlag<event>(id);
}

// Of a vector core; then of the cube core, for vector core `sub` of its group.
template <typename Message>
ASCENDC_INLINE void send_message(const Message& message) {
  vnpu::message_send(&message, sizeof message);
}
ASCENDC_INLINE GM_ADDR message_room(uint32_t bytes, int32_t& end) {
  return static_cast<GM_ADDR>(vnpu::message_room(bytes, &end));
}
ASCENDC_INLINE void await_notice(uint32_t id) { vnpu::notice_await(id); }
template <typename Message>
ASCENDC_INLINE bool receive_message(uint32_t sub, Message& message) {
  return vnpu::message_receive(sub, &message, sizeof message);
}
template <typename Message>
ASCENDC_INLINE void put_back_message(uint32_t sub, const Message& message) {
  vnpu::message_put_back(sub, &message, sizeof message);
}
ASCENDC_INLINE void message_done() { vnpu::message_done(); }
ASCENDC_INLINE void message_room_done(uint32_t sub, int32_t end) { vnpu::message_room_done(sub, end); }
template <pipe_t pipe>
ASCENDC_INLINE void raise_notice(uint32_t sub, uint32_t id) {
  vnpu::notice_raise(sub, vnpu::to_pipe(pipe), id);
}
ASCENDC_INLINE void refuse_copy_to_tscm() { vnpu::unsupported("DataCopy", "to TSCM from a vector core"); }

}  // namespace AscendC::matmul_api::matmul_inner
