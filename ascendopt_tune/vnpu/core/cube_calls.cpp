// Vector cores of a group ask its cube core to do something. On the device a message in global memory asks and a flag
// answers; here the call is run by the cube core when its turn comes, in the order in which calls were made. What it
// costs is a flag each way (docs/cube.md).
#include <algorithm>

#include "machine.h"
#include "words.h"

namespace vnpu {
namespace {

// Numbers that no kernel's flag has.
constexpr int kCall = 240, kAnswer = 244, kBell = 250;

}  // namespace

void Core::call_cube(std::function<void()> run, const void* pc) {
  const int cube = groups.group(index) * groups.size(), id = kCall + groups.sub(index);
  Event e{Event::kCrossSet, Pipe::MTE3, Pipe::S, id, kWords.cross_set, pc, ScalarKind::Flag};
  e.scope = Scope::Cube;
  tell(e);
  crossing_.raise(index, Scope::Cube, id, hazards.told());
  crossing_.calls[cube].push_back({index, std::move(run)});
  crossing_.arrive(cube, kBell, {});
}

void Core::answer(int to, const void* pc) {
  Event e{Event::kCrossSet, Pipe::FIX, Pipe::S, kAnswer, kWords.cross_set, pc, ScalarKind::Flag};
  e.scope = groups.sub(to) == 0 ? Scope::First : Scope::Second;
  tell(e);
  crossing_.raise(index, e.scope, kAnswer, hazards.told());
}

void Core::await_answer(const void* pc) {
  tell({Event::kCrossWait, Pipe::S, Pipe::S, kAnswer, kWords.cross_wait, pc});
  await(kAnswer);
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
    const int id = kCall + groups.sub(call.from);
    tell({Event::kCrossWait, Pipe::S, Pipe::S, id, kWords.cross_wait, nullptr});
    await(id);
    call.run();
  }
}

void Core::end_calls() {
  const int cube = groups.group(index) * groups.size();
  crossing_.calls[cube].push_back({index, nullptr});
  crossing_.arrive(cube, kBell, {});
}

}  // namespace vnpu
