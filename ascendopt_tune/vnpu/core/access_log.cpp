#include "access_log.h"

#include <algorithm>

#include "memory.h"

namespace vnpu {
namespace {

std::string pair(const char* name, const char* value) { return std::string("\"") + name + "\":\"" + value + "\""; }

std::string access(const Access& a, const uint8_t* local, const LocalMap& map) {
  uint64_t begin = a.gm ? a.canonical : a.range.addr - reinterpret_cast<uint64_t>(local);
  const Memory memory = map.at(begin);
  const char* name = a.gm ? "GM" : memory == Memory::kCount ? "UB" : memory_name(memory);  // registers: behind UB
  if (!a.gm && memory != Memory::kCount) begin -= map[memory].offset;
  std::string out = std::string("[\"") + name + "\"";
  for (uint64_t n : {begin, uint64_t{a.range.bytes}, uint64_t{a.range.pieces}, a.range.stride, uint64_t{a.write},
                     uint64_t{a.atomic}})
    out += "," + std::to_string(n);
  return out + "]";
}

std::string entry(const LogEntry& e, const uint8_t* local, const LocalMap& map) {
  static const char* kinds[] = {"instruction", "set",      "wait",      "barrier",
                                "barrier_all", "sync_all", "cross_set", "cross_wait"};
  std::string out = "{" + pair("kind", kinds[e.event.kind]) + "," + pair("pipe", pipe_name(e.event.pipe)) + "," +
                    pair("src", pipe_name(e.event.src)) + ",\"id\":" + std::to_string(e.event.id) + "," +
                    pair("api", e.event.api) + ",\"accesses\":[";
  bool first = true;
  for (const Access& a : e.accesses) {
    if (a.range.bytes == 0 || a.range.pieces == 0 || (a.gm && gm_is_room(a.canonical))) continue;
    out += (first ? "" : ",") + access(a, local, map);
    first = false;
  }
  out += "],\"scope\":" + std::to_string(static_cast<int>(e.event.scope)) +
         ",\"in_order\":" + (e.in_order ? "true" : "false") + ",\"after\":[";
  for (const Held& h : e.after)
    out += std::string(&h == e.after.data() ? "" : ",") + "[\"" + pipe_name(h.pipe) + "\"," + std::to_string(h.epoch) +
           "]";
  return out + "]}";
}

}  // namespace

std::string access_log_json(const std::vector<LoggedCore>& cores, const Groups& groups) {
  uint32_t bytes = 0;
  for (const LoggedCore& c : cores) bytes = std::max(bytes, c.map.bytes());
  std::string out = "{\"ub_bytes\":" + std::to_string(bytes) + ",\"cubes\":" + std::to_string(groups.cubes) +
                    ",\"vectors\":" + std::to_string(groups.vectors) + ",\"cores\":[";
  bool first = true;
  for (const LoggedCore& c : cores) {
    out += first ? "[" : ",\n[";
    first = false;
    for (size_t i = 0; i < c.log.size(); i++) out += (i ? ",\n" : "") + entry(c.log[i], c.local, c.map);
    out += "]";
  }
  return out + "]}\n";
}

}  // namespace vnpu
