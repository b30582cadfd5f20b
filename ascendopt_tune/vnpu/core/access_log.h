// The access log: what every core issued and touched, in program order, for checkers outside (LaunchOptions::log). Only
// as long as memory lasts: an entry for every instruction.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "event.h"
#include "local_map.h"

namespace vnpu {

// The hardware itself holds an instruction back until instruction `epoch` (from 1) of `pipe` is complete.
struct Held {
  Pipe pipe;
  uint32_t epoch;
};
struct LogEntry {
  Event event;  // its accesses are the entry's
  std::vector<Access> accesses;
  std::vector<Held> after;
  bool in_order = false;  // the hardware itself starts what comes behind it on its pipe when it is complete
};
using AccessLog = std::vector<LogEntry>;

struct LoggedCore {
  const AccessLog& log;
  const uint8_t* local;  // where its local memory begins
  const LocalMap& map;
};

// {"ub_bytes": n, "cubes": cube cores of a group, "vectors": its vector cores, "cores": [[entry, ...], ...]}; an
// instruction's "accesses" are [memory, first byte, bytes a piece, pieces, bytes from piece to piece, writes, atomic],
// local bytes counted from their memory's begin, GM as canonical addresses; "ub_bytes" are all local bytes of the
// largest core.
std::string access_log_json(const std::vector<LoggedCore>& cores, const Groups& groups);

}  // namespace vnpu
