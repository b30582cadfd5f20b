// Vector cores of a group ask its cube core to do something. On the device a message in global memory asks and a flag
// answers; here the call is run by the cube core when its turn comes, in the order in which calls were made. What it
// costs is a flag each way (docs/cube.md). Code that is made of messages itself has those (vnpu/messages.h).
#include <algorithm>
#include <utility>

#include "machine.h"
#include "words.h"

namespace vnpu {
namespace {

// Numbers that no kernel's flag has.
constexpr int kNotice = 64, kAnswer = 192, kCall = 240, kFreed = 245;
constexpr uint32_t kNotices = 128, kAnswers = 48;  // flags of kernels' objects that the cube core raises

}  // namespace

void Core::raise(Scope scope, Pipe pipe, int id, const void* pc) {
  Event e{Event::kCrossSet, pipe, Pipe::S, id, kWords.cross_set, pc, ScalarKind::Flag};
  e.scope = scope;
  tell(e);
  crossing_.raise(index, scope, id, hazards.told());
}

void Core::await_raised(int id, const void* pc) {
  tell({Event::kCrossWait, Pipe::S, Pipe::S, id, kWords.cross_wait, pc});
  await(id);
}

void Core::call_cube(std::function<void()> run, const void* pc) {
  const int cube = groups.group(index) * groups.size();
  hazards.message();
  raise(Scope::Cube, Pipe::MTE3, kCall + groups.sub(index), pc);
  crossing_.calls[cube].push_back({index, std::move(run)});
  crossing_.arrive(cube, kBell, {});
}

void Core::join_call(const void* pc) {
  hazards.message();
  raise(Scope::Cube, Pipe::MTE3, kCall + groups.sub(index), pc);
}

void Core::await_joined(int from, const void* pc) {
  for (int sub = 0; sub < groups.vectors; sub++)
    if (sub != groups.sub(from)) await_raised(kCall + sub, pc);
}

void Core::answer(int to, size_t object, const void* pc) {
  raise(to_vector(groups.sub(to)), Pipe::FIX, kAnswer + static_cast<int>(object % kAnswers), pc);
}

void Core::await_answer(size_t object, const void* pc) {
  await_raised(kAnswer + static_cast<int>(object % kAnswers), pc);
}

void Core::serve() {
  int running = groups.vectors;
  std::deque<CubeCall> open;
  // A block that waits to be brought out belongs to one vector core: the other one's calls have to wait.
  const auto may_run = [this](const CubeCall& call) {
    return !call.run || std::none_of(multiplications.begin(), multiplications.end(),
                                     [&](const auto& m) { return m.second.ready && m.second.from != call.from; });
  };
  while (running > 0) {
    while (crossing_.pending(index, kBell) > 0) {
      crossing_.take(index, kBell);
      open.push_back(std::move(crossing_.calls[index].front()));
      crossing_.calls[index].pop_front();
    }
    const auto next = std::find_if(open.begin(), open.end(), may_run);
    if (next == open.end()) {
      give_way(kBell);
      continue;
    }
    const CubeCall call = std::move(*next);
    open.erase(next);
    scalar(ScalarKind::Message);  // that a core has ended is one, too
    if (!call.run) {
      running--;
      for (auto& [number, m] : multiplications) m.ready = m.ready && m.from != call.from;
      continue;
    }
    await_raised(kCall + groups.sub(call.from), nullptr);
    call.run();
  }
}

void Core::send(std::vector<uint8_t> message, const void* pc) {
  hazards.message();
  raise(Scope::Cube, Pipe::MTE3, kCall + groups.sub(index), pc);
  crossing_.messages[index].push_back({std::move(message)});
  crossing_.arrive(groups.group(index) * groups.size(), kBell, {});
}

// A kernel that looks again and again gives way after two looks that led to nothing, one for each vector core.
bool Core::receive(int sub, std::vector<uint8_t>& message, const void* pc) {
  if (in_vain_ > 1) await_message(pc);
  std::deque<CubeMessage>& all = crossing_.messages[vector_of(sub)];
  if (all.empty()) {
    in_vain_++;
    return false;
  }
  message = std::move(all.front().bytes);
  const bool seen = all.front().seen;
  all.pop_front();
  if (seen) return true;
  scalar(ScalarKind::Message);
  await_raised(kCall + sub, nullptr);
  return true;
}

void Core::put_back(int sub, std::vector<uint8_t> message) {
  crossing_.messages[vector_of(sub)].push_front({std::move(message), true});
  in_vain_++;
}

void Core::await_message(const void* pc) {
  in_vain_ = 0;
  if (crossing_.pending(index, kBell) == 0 && crossing_.calls[index].size() == static_cast<size_t>(groups.vectors))
    throw KernelError(KernelError::kDeadlock, kWords.no_message, kWords.cross_wait, pc);
  give_way(kBell);
  while (crossing_.pending(index, kBell) > 0) crossing_.take(index, kBell);
}

void Core::notify(int sub, Pipe pipe, uint32_t id, const void* pc) {
  raise(to_vector(sub), pipe, kNotice + static_cast<int>(id % kNotices), pc);
}

void Core::await_notice(uint32_t id, const void* pc) { await_raised(kNotice + static_cast<int>(id % kNotices), pc); }

void Core::free_room(int sub, int32_t end, const void* pc) {
  raise(to_vector(sub), Pipe::FIX, kFreed, pc);
  crossing_.freed[vector_of(sub)].push_back(end);
}

int32_t Core::await_room(const void* pc) {
  await_raised(kFreed, pc);
  std::deque<int32_t>& freed = crossing_.freed[index];
  const int32_t end = freed.front();
  freed.pop_front();
  return end;
}

void Core::end_calls() {
  const int cube = groups.group(index) * groups.size();
  crossing_.calls[cube].push_back({index, nullptr});
  crossing_.arrive(cube, kBell, {});
}

}  // namespace vnpu
