#include "own_clock.h"

namespace vnpu {

OwnClock::OwnClock(const Trace& trace, const Chip& chip)
    : chip_(chip),
      traces_{&trace},
      cross_(1, chip.cross_flags),
      traffic_(traces_, chip, l2_),
      core_(0, trace, nobody_, traffic_.bandwidth(), cross_, chip, nullptr) {}

double OwnClock::now() {
  core_.extend();
  core_.advance(traffic_.arrivals());
  while (!core_.through()) {
    if (traffic_.awaited())
      traffic_.step(&core_);
    else if (core_.at_sync())  // the others are there at the same time
      core_.leave_sync(core_.sync_time() + chip_.sync_all);
    else if (!cross_.news())
      break;  // it waits for what never happens: the launch ends with that
    core_.advance(traffic_.arrivals());
  }
  return core_.scalar_time();
}

}  // namespace vnpu
