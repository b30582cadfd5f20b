// What passes between the cores of a launch while kernels run: flags with what is known, and calls that vector cores
// hand to the cube core of their group.
#pragma once
#include <deque>
#include <functional>
#include <map>

#include "cross_flags.h"
#include "knowledge.h"

namespace vnpu {

struct CubeCall {
  int from;                   // the core that asks
  std::function<void()> run;  // none: it has ended
};

class Crossing : public CrossFlags<Knowledge> {
 public:
  using CrossFlags<Knowledge>::CrossFlags;
  std::map<int, std::deque<CubeCall>> calls;  // by cube core, in the order in which they were made
};

}  // namespace vnpu
