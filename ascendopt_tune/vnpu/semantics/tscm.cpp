// Copies to L1 that a vector core asks its cube core for. On the device they are messages like those of the high-level
// Matmul, and in one order with them (asc-devkit, dav_c220/kernel_operator_scm_data_copy_impl.h); so they are here.
#include "vnpu/tscm.h"

#include <algorithm>

#include "../core/machine.h"
#include "../core/vector.h"
#include "handed_over.h"
#include "multiplication.h"
#include "tscm_place.h"
#include "vnpu/messages.h"

namespace vnpu {
namespace {

// The cube core does `copy`, and MTE1 waits for it. Nothing else is ordered there: that what was at the place has been
// read the vector core knows when it has waited for who read it.
template <typename Copy>
void ask_for_copy(const void* dst, const char* api, const void* pc, Copy copy) {
  Core& asking = core();
  const TscmPlace place(dst);
  order(Pipe::S, Pipe::MTE3);
  asking.call_cube(
      [place, api, pc, copy] {
        const Calling calling(pc);
        copy(place.on_cube_core(api));
        order(Pipe::MTE2, Pipe::MTE1);
      },
      pc);
}

void check_server(const char* api) {
  if (core().matmul_numbers.empty())
    misuse(api,
           "to L1 from a vector core is the work of the cube core that serves its Matmul objects: REGIST_MATMUL_OBJ of "
           "the "
           "virtual NPU's own Matmul has to come first");
}

// Bytes of global memory that pieces take, gaps included.
uint64_t span(uint32_t pieces, uint64_t bytes, uint64_t stride) { return (pieces - 1) * stride + bytes; }

// The Unified Buffer's bytes go to the core's room for messages as they lie, behind what V has done.
template <typename Copy>
void ask_by_way_of_gm(void* dst, const void* src, const CopyShape& out, const char* api, const void* pc, Copy copy) {
  check_server(api);
  Core& asking = core();
  int32_t end = 0;
  void* room = message_room(static_cast<uint32_t>(span(out.bursts, out.burst_bytes, out.src_stride)), &end);
  order(Pipe::V, Pipe::MTE3);
  copy_local_to_gm(room, src, out, api);
  ask_for_copy(dst, api, pc, [room, copy, end, pc, sub = asking.groups.sub(asking.index)](void* to) {
    copy(to, room);
    order(Pipe::MTE2, Pipe::FIX);  // which raises the flag that gives the room back
    core().free_room(sub, end, pc);
  });
}

}  // namespace

bool asks_for_l1() {
  const Core& c = core();
  return c.kind == CoreKind::Vector && c.groups.mixed();
}

void expect_to_ask(const Matmul& object) {
  Core& c = core();
  if (asks_for_l1()) c.matmul_numbers.emplace(&object, c.matmul_numbers.size());
}

// asc-devkit, TPipe::TscmInitBuffer.
void* l1_room(uint32_t bytes, bool together) {
  Core& c = core();
  const uint32_t cores = together ? 1 : static_cast<uint32_t>(c.groups.vectors);
  const auto* base = static_cast<const uint8_t*>(local_base(Memory::L1));
  const auto* taken = static_cast<const uint8_t*>(c.allocate_local(Memory::L1, cores * bytes, VNPU_PC));
  const uint64_t end = static_cast<uint64_t>(taken - base) + static_cast<uint64_t>(cores) * bytes;
  if (end > c.chip.l1_bytes)
    misuse("TPipe::InitBuffer", ("the group's buffers in TSCM take " + std::to_string(end) +
                                 " bytes of L1, which has " + std::to_string(c.chip.l1_bytes))
                                    .c_str());
  const uint32_t own = together ? 0 : static_cast<uint32_t>(c.groups.sub(c.index)) * bytes;
  return const_cast<uint8_t*>(base) + (c.chip.l1_bytes - end + own);
}

void ask_for_l1(void* dst, const void* src, const CopyShape& s, const char* api) {
  const void* pc = VNPU_PC;
  if (s.bursts == 0 || s.burst_bytes == 0) return;
  check_server(api);
  ask_for_copy(dst, api, pc, [src, s, api](void* to) { copy_gm_to_local(to, src, s, api); });
}

void ask_for_l1(void* dst, const void* src, const RowsToTiles& s, const char* api) {
  const void* pc = VNPU_PC;
  check_server(api);
  ask_for_copy(dst, api, pc, [src, s, api](void* to) { copy_rows_to_tiles(to, src, s, api); });
}

void ask_for_l1_from_local(void* dst, const void* src, const CopyShape& s, const char* api) {
  const void* pc = VNPU_PC;
  if (s.bursts == 0 || s.burst_bytes == 0) return;
  CopyShape out = s;
  out.dst_stride = s.src_stride;
  ask_by_way_of_gm(dst, src, out, api, pc,
                   [s, api](void* to, const void* from) { copy_gm_to_local(to, from, s, api); });
}

void ask_for_l1_from_local(void* dst, const void* src, const RowsToTiles& s, const char* api) {
  const void* pc = VNPU_PC;
  CopyShape out;
  out.burst_bytes = s.rows * s.row_bytes;
  ask_by_way_of_gm(dst, src, out, api, pc,
                   [s, api](void* to, const void* from) { copy_rows_to_tiles(to, from, s, api); });
}

}  // namespace vnpu
