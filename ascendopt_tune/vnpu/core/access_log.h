// The access log: what every core issued and touched, in program order, for checkers outside (LaunchOptions::log). Only
// as long as memory lasts: an entry for every instruction.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "event.h"
#include "local_map.h"

namespace vnpu {

struct LogEntry {
  Event event;  // its accesses are the entry's
  std::vector<Access> accesses;
};
using AccessLog = std::vector<LogEntry>;

struct LoggedCore {
  const AccessLog& log;
  const uint8_t* local;  // where its local memory begins
  const LocalMap& map;
};

// {"ub_bytes": n, "cores": [[entry, ...], ...]}; an instruction's "accesses" are [memory, first byte, bytes a piece,
// pieces, bytes from piece to piece, writes, atomic], local bytes counted from their memory's begin, GM as canonical
// addresses; "ub_bytes" are all local bytes of the largest core.
std::string access_log_json(const std::vector<LoggedCore>& cores);

}  // namespace vnpu
