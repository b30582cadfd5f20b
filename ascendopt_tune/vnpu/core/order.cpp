// What orders pipes and cores: flags, barriers, meetings, and the events they are of.

#include <algorithm>
#include <exception>

#include "machine.h"
#include "words.h"

namespace vnpu {

void Core::set_flag(Pipe src, Pipe dst, int id, const void* pc, bool settled) {
  tell({Event::kSetFlag, dst, src, id, kWords.set_flag, pc, ScalarKind::Flag, settled});
}

void Core::wait_flag(Pipe src, Pipe dst, int id, const void* pc, bool settled) {
  if (std::uncaught_exceptions() > 0) return;  // the launch has failed; destructors of the kernel's objects wait
  if (!hazards.is_set(src, dst, id))
    throw KernelError(KernelError::kDeadlock,
                      std::string(kWords.wait_flag) + "<" + pipe_name(src) + "_" + pipe_name(dst) + "> on event " +
                          std::to_string(id) + " has no " + kWords.set_flag +
                          " before it: the core would wait for ever",
                      kWords.wait_flag, pc);
  tell({Event::kWaitFlag, dst, src, id, kWords.wait_flag, pc, ScalarKind::Flag, settled});
}

void Core::barrier(Pipe pipe) { tell({Event::kBarrier, pipe, Pipe::S, 0, kWords.barrier, nullptr, ScalarKind::Flag}); }

void Core::barrier_all() {
  for (const HazardTracker::OpenFlag& f : hazards.open_flags(true))
    throw KernelError(KernelError::kDeadlock,
                      std::string(kWords.barrier_all) + " while " + kWords.set_flag + "<" + pipe_name(f.src) + "_" +
                          pipe_name(f.dst) + "> on event " + std::to_string(f.id) + " was called twice with no " +
                          kWords.wait_flag + " in between: " + kWords.set_twice,
                      kWords.barrier, f.pc);
  tell({Event::kBarrierAll, Pipe::S, Pipe::S, 0, kWords.barrier_all, nullptr, ScalarKind::Flag});
}

void Core::needs_all_at_once(const std::string& call, const char* api, const void* pc) const {
  const int most = groups.at_once(chip);
  if (groups.blocks <= most) return;
  throw KernelError(KernelError::kDeadlock,
                    call + " with " + std::to_string(groups.blocks) + " blocks on " + std::to_string(most) +
                        (groups.mixed() ? " groups of" : "") +
                        " cores: it needs all of them running at once and would wait for ever",
                    api, pc);
}

// Meetings are flags behind those that kernels set.
void Core::sync_all(bool own_kind) {
  if (!own_kind && !groups.mixed())
    throw KernelError(KernelError::kDeadlock, std::string(kWords.meet) + ": " + kWords.meet_other_kind, kWords.meet,
                      nullptr);
  const Scope scope = own_kind ? Scope::Kind : Scope::All;
  const int id = static_cast<int>(chip.cross_flags) + (scope == Scope::All);
  needs_turn(kWords.meet, nullptr);
  needs_all_at_once(kWords.meet, kWords.meet, nullptr);
  Event e{Event::kMeet, Pipe::S, Pipe::S, 0, kWords.meet};
  e.scope = scope;
  tell(e);
  std::fill(dcache_.begin(), dcache_.end(), ~0ull);
  crossing_.raise(index, scope, id, hazards.told());
  await(id);
}

// asc-devkit, SyncAll: room for all cores on both sides, and zeros to begin with, which nobody else may still have to
// write. The device counts in them; here they stay.
void Core::sync_by_counters(const void* global, const void* local, uint32_t used, const void* pc) {
  const auto cores = static_cast<uint32_t>(groups.blocks);
  if (used != 0 && used != cores)
    throw KernelError(
        used > cores ? KernelError::kMisuse : KernelError::kUnsupported,
        std::string(kWords.meet) + " of " + std::to_string(used) + " of " + std::to_string(cores) + " cores",
        kWords.meet, pc);
  const auto range_at = [&](const void* p) { return Range{reinterpret_cast<uint64_t>(p), cores * kBlockBytes, 1, 0}; };
  check_local(range_at(local), kBlockBytes, kWords.meet, pc, "workspace");
  check_gm(range_at(global), true, kWords.meet, pc, "workspace");
  const auto* words = static_cast<const int32_t*>(global);
  for (uint32_t i = 0; i < cores; i++)
    if (words[i * kBlockBytes / sizeof(int32_t)] != 0)
      throw KernelError(KernelError::kDeadlock, std::string(kWords.meet) + ": " + kWords.counters, kWords.meet, pc);
  sync_all(true);
}

void Core::await(int id) {
  give_way(id);
  hazards.learn(crossing_.take(index, id));
}

void Core::cross_set(Scope scope, Pipe pipe, uint32_t id, const void* pc) {
  id %= chip.cross_flags;
  const std::string call = std::string(kWords.cross_set) + "(" + std::to_string(id) + ")";
  needs_turn(kWords.cross_set, pc);
  if (scope != Scope::Kind && (!groups.mixed() || (scope == Scope::Vectors && kind == CoreKind::Cube)))
    throw KernelError(KernelError::kMisuse, call + ": " + kWords.group_flags, kWords.cross_set, pc);
  if (scope == Scope::Kind && groups.mixed()) needs_all_at_once(call, kWords.cross_set, pc);
  Event e{Event::kCrossSet, pipe, Pipe::S, static_cast<int>(id), kWords.cross_set, pc, ScalarKind::Flag};
  e.scope = scope;
  const bool alone = scope == Scope::Kind && groups.blocks > groups.at_once(chip);  // nobody can wait for it
  const auto overflows = [&](size_t pending) {
    if (pending > chip.cross_flag_most)
      throw KernelError(KernelError::kMisuse,
                        call + " more than " + std::to_string(chip.cross_flag_most) + " times without " +
                            kWords.cross_wait + ": the flag's counter overflows",
                        kWords.cross_set, pc);
  };
  if (scope == Scope::Kind) overflows(++crossed_[id] - awaited_[id]);
  tell(e);
  if (!alone) overflows(crossing_.raise(index, scope, static_cast<int>(id), hazards.told()));
}

void Core::cross_wait(uint32_t id, const void* pc) {
  id %= chip.cross_flags;
  const std::string call = std::string(kWords.cross_wait) + "(" + std::to_string(id) + ")";
  if (!groups.mixed()) {
    if (awaited_[id] == crossed_[id])
      throw KernelError(
          KernelError::kDeadlock,
          call + " has no " + kWords.cross_set + " before it on its own core: the core would wait for ever",
          kWords.cross_wait, pc);
    needs_all_at_once(call, kWords.cross_wait, pc);
  }
  tell({Event::kCrossWait, Pipe::S, Pipe::S, static_cast<int>(id), kWords.cross_wait, pc});
  awaited_[id]++;
  await(static_cast<int>(id));
}

int Core::allocate_event(Pipe src, Pipe dst, const void* pc) {
  uint64_t& used = events_[static_cast<int>(src)][static_cast<int>(dst)];
  for (uint32_t id = 0; id < chip.event_ids; id++)
    if (!(used >> id & 1)) {
      used |= 1ull << id;
      return static_cast<int>(id);
    }
  throw KernelError(KernelError::kMisuse,
                    std::string("all ") + std::to_string(chip.event_ids) + " event ids from " + pipe_name(src) +
                        " to " + pipe_name(dst) + " are taken; release one or use fewer queues and buffers",
                    kWords.allocate_event, pc);
}

void Core::needs_matrix_flag(int id) const {
  if (hazards.is_set(Pipe::M, Pipe::MTE1, id)) return;
  throw KernelError(KernelError::kDeadlock,
                    "flag " + std::to_string(id) +
                        " from M to MTE1 was raised when the kernel began and is waited for at its end, and nobody has "
                        "raised it again",
                    kWords.wait_flag, nullptr);
}

void Core::release_event(Pipe src, Pipe dst, int id) {
  events_[static_cast<int>(src)][static_cast<int>(dst)] &= ~(1ull << id);
}

}  // namespace vnpu
