// TPipe objects one after another. What an end orders costs time only where something follows: at a kernel's end the
// constants of the launch have it (asc-devkit, kernel_tpipe_impl.h).

#include <algorithm>

#include "vnpu/untimed.h"

#include "machine.h"

namespace vnpu {

void Core::pipe_made(void* pipe, bool new_one) {
  if (ended_) end_pipe();
  const bool first = user_pipe == nullptr;
  user_pipe = pipe;
  if (std::find(pipes_.begin(), pipes_.end(), pipe) == pipes_.end()) pipes_.push_back(pipe);
  if (first || pipes_.size() > 1) return;
  reset_local();
  if (!new_one) return;
  atomic = Atomic::None;
  counter_mode = false;
  mask[0] = mask[1] = ~0ull;
  scalar(ScalarKind::Cycle, 3);
}

void Core::pipe_ended(const void* pipe, const FreedFlag* freed, size_t number) {
  const auto at = std::find(pipes_.begin(), pipes_.end(), pipe);
  if (at == pipes_.end()) return;  // Destroy was called
  pipes_.erase(at);
  freed_.insert(freed_.end(), freed, freed + number);
  ended_ = true;
}

void Core::pipe_destroyed(const void* pipe) {
  pipes_.erase(std::remove(pipes_.begin(), pipes_.end(), pipe), pipes_.end());
}

// The flags of the matrix unit are one set, whoever has raised them.
void Core::end_pipe() {
  ended_ = false;
  for (const FreedFlag& f : std::exchange(freed_, {})) {
    wait_flag(f.src, f.dst, f.id, nullptr, true);
    release_event(f.src, f.dst, f.id);
  }
  if (pipes_.empty()) take_matrix_flags_down();
  barrier_all();
}

}  // namespace vnpu
