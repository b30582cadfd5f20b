#include "own_clock.h"

namespace vnpu {

OwnClock::OwnClock(const Trace& trace, const Chip& chip)
    : chip_(chip),
      traces_{&trace},
      cross_(Groups{}),
      traffic_(traces_, none_, chip, l2_, 0),
      core_(0, trace, nobody_, traffic_.bandwidth(), cross_, chip, nullptr) {}

double OwnClock::now() {
  core_.extend();
  core_.advance(traffic_.arrivals());
  while (!core_.through()) {
    if (traffic_.awaited())
      traffic_.step(&core_);
    else if (core_.at_sync(Scope::Kind) || core_.at_sync(Scope::All))  // the others are there at the same time
      core_.leave_sync(core_.sync_time() + chip_.sync_all);
    else if (const auto flag = core_.awaited())  // the others have raised it, where the core itself hasn't
      cross_.pending(flag->first, flag->second) > 0 ? void()
                                                    : cross_.arrive(flag->first, flag->second, core_.scalar_time());
    else if (!cross_.news())
      break;  // it waits for what never happens: the launch ends with that
    core_.advance(traffic_.arrivals());
  }
  return core_.scalar_time();
}

}  // namespace vnpu
