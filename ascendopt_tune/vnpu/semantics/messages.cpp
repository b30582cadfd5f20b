// Messages between the cores of a group (include/vnpu/messages.h), and the room for what they speak of.
#include "vnpu/messages.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "../core/machine.h"
#include "../core/vector.h"
#include "handed_over.h"

namespace vnpu {
namespace {

uint8_t* room_of(int core) {
  static CoreRooms rooms(kMessageRoom);
  return rooms.of(core);
}

}  // namespace

void message_send(const void* message, uint32_t bytes) {
  if (std::uncaught_exceptions() > 0) return;  // the launch has failed; the kernel is being left
  const auto* first = static_cast<const uint8_t*>(message);
  order(Pipe::S, Pipe::MTE3);
  core().send({first, first + bytes}, VNPU_PC);
}

bool message_receive(uint32_t sub, void* message, uint32_t bytes) {
  std::vector<uint8_t> next;
  if (!core().receive(static_cast<int>(sub), next, VNPU_PC)) return false;
  std::memcpy(message, next.data(), std::min<size_t>(bytes, next.size()));
  return true;
}

void message_put_back(uint32_t sub, const void* message, uint32_t bytes) {
  const auto* first = static_cast<const uint8_t*>(message);
  core().put_back(static_cast<int>(sub), {first, first + bytes});
}

void message_done() { core().done_with_message(); }

void* message_room(uint32_t bytes, int32_t* end) {
  const void* pc = VNPU_PC;
  Core& here = core();
  MessageRoom& room = here.message_room;
  if (bytes > kMessageRoom) unsupported("Matmul", "matrices of more than 192 KB in the Unified Buffer");
  const uint32_t begin = room.next + bytes > kMessageRoom ? 0 : room.next;
  const auto taken = [&](const MessageRoom::Piece& p) { return p.begin < begin + bytes && begin < p.end; };
  while (std::any_of(room.pieces.begin(), room.pieces.end(), taken)) {
    const auto freed = static_cast<uint32_t>(here.await_room(pc));
    const auto last =
        std::find_if(room.pieces.begin(), room.pieces.end(), [&](const auto& p) { return p.end == freed; });
    if (last != room.pieces.end()) room.pieces.erase(room.pieces.begin(), last + 1);
  }
  room.next = begin + bytes;
  room.pieces.push_back({begin, room.next});
  *end = static_cast<int32_t>(room.next);
  return room_of(here.index) + begin;
}

void message_room_done(uint32_t sub, int32_t end) { core().free_room(static_cast<int>(sub), end, VNPU_PC); }

void notice_raise(uint32_t sub, Pipe pipe, uint32_t id) { core().notify(static_cast<int>(sub), pipe, id, VNPU_PC); }

void notice_await(uint32_t id) { core().await_notice(id, VNPU_PC); }

void share_begin(uint32_t l1, uint32_t l0c, bool second) {
  Core& here = core();
  here.share_begin(Memory::L1, false, l1, second ? l1 / 2 : 0);
  here.share_begin(Memory::L0C, false, l0c, second ? l0c / 2 : 0);
  for (const Memory memory : {Memory::L0A, Memory::L0B, Memory::BT}) here.share_begin(memory, true);
}

void share_end() {
  for (const Memory memory : {Memory::L1, Memory::L0C}) core().share_end(memory);
}

}  // namespace vnpu
