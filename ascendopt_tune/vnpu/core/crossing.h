// What passes between the cores of a launch while kernels run: flags with what is known, and calls and messages that
// vector cores hand to the cube core of their group.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "cross_flags.h"
#include "knowledge.h"

namespace vnpu {

// Numbers of no kernel's flag: a cube core that serves waits for kBell, a core that looks at global memory for kLook.
constexpr int kBell = 250, kLook = 251;

struct CubeCall {
  int from;                   // the core that asks
  std::function<void()> run;  // none: it has ended
};

struct CubeMessage {
  std::vector<uint8_t> bytes;
  bool seen = false;  // the cube core has read it once, and has put it back
};

// What a vector core has taken of its room for what messages speak of, in the order in which it is given back.
struct MessageRoom {
  struct Piece {
    uint32_t begin, end;
  };
  uint32_t next = 0;
  std::deque<Piece> pieces;
};

class Crossing : public CrossFlags<Knowledge> {
 public:
  using CrossFlags<Knowledge>::CrossFlags;
  std::map<int, std::deque<CubeCall>> calls;        // by cube core, in the order in which they were made
  std::map<int, std::deque<CubeMessage>> messages;  // by vector core
  std::map<int, std::deque<int32_t>> freed;         // by vector core: up to where its room for messages is free again

  // The number of the flag in global memory at `canonical`, and who gets it (groups.h).
  uint32_t box(uint64_t canonical) {
    return boxes_.try_emplace(canonical, static_cast<uint32_t>(boxes_.size())).first->second;
  }
  // Cores that look at global memory until it is what they wait for: all look again when a flag there has changed.
  void look(int core) { looking_.push_back(core); }
  void changed() {
    for (int core : std::exchange(looking_, {})) arrive(core, kLook, {});
  }

 private:
  std::map<uint64_t, uint32_t> boxes_;
  std::vector<int> looking_;
};

}  // namespace vnpu
