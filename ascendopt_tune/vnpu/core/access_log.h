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

// {"ub_bytes": n, "cores": [[entry, ...], ...]}; an instruction's "accesses" are [memory, first byte, bytes a piece,
// pieces, bytes from piece to piece, writes, atomic], UB bytes counted from `local[core]`, GM as canonical addresses.
std::string access_log_json(const std::vector<const AccessLog*>& cores, const std::vector<const uint8_t*>& local,
                            const LocalMap& map);

}  // namespace vnpu
