// Flags that cores keep in global memory, and look at until they are what they wait for. The looks that come too early
// are no accesses here: who waits gives the others their turns instead. In modelled time the wait ends when the copy
// that has changed the flag is complete; the caller's last look, a copy of its own, comes then.
#include "machine.h"

namespace vnpu {

void Core::memory_wait(const void* flags, const MemoryFlags& until, const char* api, const void* pc) {
  needs_turn(api, pc);
  needs_all_at_once(api, api, pc);
  const Range all{reinterpret_cast<uint64_t>(flags), until.number * kBlockBytes, 1, 0};
  const uint64_t at = check_gm(all, false, api, pc, "workspace");
  hazards.in_pairs = true;
  const auto* words = static_cast<const int32_t*>(flags);
  // The first flag that isn't as it has to be; `number` when none is.
  const auto differs = [&] {
    uint32_t i = 0;
    while (i < until.number && words[i * kBlockBytes / sizeof(int32_t)] == (i < until.set ? until.value : 0)) i++;
    return i;
  };
  for (uint32_t i = differs(); i < until.number; i = differs()) {
    looks_for = std::string(api) + " on " + groups.name(index) + ": flag " + std::to_string(i) +
                " in global memory holds " + std::to_string(words[i * kBlockBytes / sizeof(int32_t)]) +
                ", it waits for " + std::to_string(i < until.set ? until.value : 0);
    crossing_.look(index);
    give_way(kLook);
    crossing_.take(index, kLook);
  }
  const uint32_t box = crossing_.box(at + uint64_t(until.of) * kBlockBytes);
  const int receiver = box_receiver(static_cast<int>(box)), kind = static_cast<int>(until.kind);
  if (crossing_.pending(receiver, kind) == 0) return;  // it was like this when the launch began
  Event e{Event::kCrossWait, Pipe::S, Pipe::S, kind, api, pc};
  e.scope = Scope::Memory;
  e.box = box;
  tell(e);
  hazards.learn(crossing_.take(receiver, kind));
}

void Core::memory_raise(const void* flag, uint32_t kind, const char* api, const void* pc) {
  needs_turn(api, pc);
  const uint64_t at = check_gm({reinterpret_cast<uint64_t>(flag), kBlockBytes, 1, 0}, true, api, pc, "workspace");
  hazards.in_pairs = true;
  Event e{Event::kCrossSet, Pipe::MTE3, Pipe::S, static_cast<int>(kind), api, pc};
  e.scope = Scope::Memory;
  e.box = crossing_.box(at);
  tell(e);
  crossing_.arrive(box_receiver(static_cast<int>(e.box)), static_cast<int>(kind), hazards.told());
  crossing_.changed();
}

}  // namespace vnpu
