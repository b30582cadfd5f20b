// Which cores a launch has: blocks on cores of one kind, or groups of one cube core and one or two vector cores.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "local_map.h"

namespace vnpu {

// Which cores a flag between cores gathers, before it is there for whom it is (AscendC reference, CrossCoreSetFlag):
// all of the raising core's kind, for themselves (mode 0); the vector cores of its group, for themselves (mode 1);
// those of its kind in its group, for the others of the group (mode 2). All: every core of the launch, for themselves.
// What one core says to one: Cube, a vector core to the cube core of its group; First and Second, that to one of those.
// Memory: a flag in global memory, which is for whoever takes it.
enum class Scope : uint8_t { Kind, Vectors, Group, All, Cube, First, Second, Memory };

// Cores of a launch are numbered group by group, in a group the cube core first.
struct Groups {
  int blocks = 1;              // groups, as the launch says
  int cubes = 0, vectors = 1;  // cores of a group

  int size() const { return cubes + vectors; }
  int cores() const { return blocks * size(); }
  bool mixed() const { return cubes != 0 && vectors != 0; }
  bool has(CoreKind kind) const { return (kind == CoreKind::Cube ? cubes : vectors) != 0; }
  int cores(CoreKind kind) const { return blocks * (kind == CoreKind::Cube ? cubes : vectors); }

  int group(int core) const { return core / size(); }
  CoreKind kind(int core) const { return core % size() < cubes ? CoreKind::Cube : CoreKind::Vector; }
  // Which of its kind it is, in its group and in the launch.
  int sub(int core) const { return kind(core) == CoreKind::Cube ? 0 : core % size() - cubes; }
  int block(int core) const { return kind(core) == CoreKind::Cube ? group(core) : group(core) * vectors + sub(core); }
  // How many of its kind a group has.
  int ratio(int core) const { return kind(core) == CoreKind::Cube ? cubes : vectors; }

  // How many groups a chip runs at once.
  int at_once(const Chip& chip) const {
    const uint32_t by_cubes = cubes ? chip.aic / static_cast<uint32_t>(cubes) : chip.aiv;
    const uint32_t by_vectors = vectors ? chip.aiv / static_cast<uint32_t>(vectors) : chip.aic;
    return static_cast<int>(std::min(by_cubes, by_vectors));
  }

  // For reports: where there are two kinds, a number alone says too little.
  std::string name(int core) const {
    if (!mixed()) return "core " + std::to_string(core);
    return (kind(core) == CoreKind::Cube ? "AIC " : "AIV ") + std::to_string(block(core));
  }

  // Of a flag that `core` raises: how many cores have to, and a number that tells them from others of the same scope.
  int members(int core, Scope scope) const {
    switch (scope) {
      case Scope::Cube:
      case Scope::First:
      case Scope::Second:
        return 1;
      case Scope::Kind:
        return cores(kind(core));
      case Scope::All:
        return cores();
      default:
        return scope == Scope::Vectors ? vectors : ratio(core);
    }
  }
  int team(int core, Scope scope) const {
    if (scope >= Scope::Cube) return core;
    const int cube = kind(core) == CoreKind::Cube;
    return scope == Scope::All ? 0 : scope == Scope::Kind ? cube : 2 * group(core) + cube;
  }
  // f(core) of each that the flag is for.
  template <typename F>
  void for_targets(int core, Scope scope, F f) const {
    if (scope >= Scope::Cube)
      return f(group(core) * size() + (scope == Scope::Cube ? 0 : cubes + (scope == Scope::Second)));
    const bool everywhere = scope == Scope::Kind || scope == Scope::All;
    const int first = everywhere ? 0 : group(core) * size(), last = everywhere ? cores() : first + size();
    for (int c = first; c < last; c++)
      if (scope == Scope::All || (kind(c) == kind(core)) == (scope != Scope::Group)) f(c);
  }
};

// A flag in global memory arrives at its box, beside the cores.
inline int box_receiver(int box) { return -1 - box; }

inline Groups groups_of(CoreKind kind, int blocks) {
  return {blocks, kind == CoreKind::Cube ? 1 : 0, kind == CoreKind::Vector ? 1 : 0};
}

}  // namespace vnpu
