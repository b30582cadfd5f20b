#include "chip.h"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace vnpu {
namespace {

std::filesystem::path chips_folder() {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&load_chip), &info);
  return std::filesystem::absolute(info.dli_fname).parent_path().parent_path() / "chips";
}

std::string trim(std::string s) {
  const char* blank = " \t\r";
  s.erase(0, s.find_first_not_of(blank));
  s.erase(s.find_last_not_of(blank) + 1);
  return s;
}

// The subset of TOML that chip files use: [section], key = number | "text", # comments.
std::map<std::string, std::string> parse(std::istream& in, const std::string& file) {
  std::map<std::string, std::string> out;
  std::string line, section;
  for (int number = 1; std::getline(in, line); number++) {
    bool quoted = false;
    for (size_t i = 0; i < line.size(); i++) {
      if (line[i] == '"') quoted = !quoted;
      if (line[i] == '#' && !quoted) line.resize(i);
    }
    line = trim(line);
    if (line.empty()) continue;
    if (line.front() == '[' && line.back() == ']') {
      section = line.substr(1, line.size() - 2) + ".";
      continue;
    }
    size_t eq = line.find('=');
    if (eq == std::string::npos)
      throw std::runtime_error(file + ":" + std::to_string(number) + ": expected `key = value`, got `" + line + "`");
    std::string value = trim(line.substr(eq + 1));
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    std::string digits;
    for (char c : value)
      if (c != '_') digits += c;
    bool numeric = !value.empty() && (isdigit(value[0]) || value[0] == '-' || value[0] == '.');
    out[section + trim(line.substr(0, eq))] = numeric ? digits : value;
  }
  return out;
}

}  // namespace

std::string Chip::text(const char* key) const {
  auto it = values.find(key);
  if (it == values.end()) throw std::runtime_error("chip file " + name + ".toml has no value `" + key + "`");
  return it->second;
}

double Chip::number(const char* key) const {
  std::string value = text(key);
  try {
    return std::stod(value);
  } catch (const std::exception&) {
    throw std::runtime_error("chip file " + name + ".toml: `" + key + "` is `" + value + "`, expected a number");
  }
}

Chip load_chip(const std::string& name) {
  auto folder = chips_folder();
  auto file = folder / (name + ".toml");
  std::ifstream in(file);
  if (!in || name.find('/') != std::string::npos) {
    std::string known;
    std::error_code ec;
    for (auto& f : std::filesystem::directory_iterator(folder, ec))
      if (f.path().extension() == ".toml") known += " " + f.path().stem().string();
    throw std::runtime_error("unknown chip `" + name + "`; known chips:" + (known.empty() ? " none" : known));
  }
  Chip c;
  c.name = name;
  c.values = parse(in, file.string());
  c.clock_mhz = c.number("core.clock_mhz");
  c.aiv = static_cast<uint32_t>(c.number("core.aiv"));
  c.aic = static_cast<uint32_t>(c.number("core.aic"));
  c.ub_bytes = static_cast<uint32_t>(c.number("memory.ub_bytes"));
  c.ub_reserved_bytes = static_cast<uint32_t>(c.number("memory.ub_reserved_bytes"));
  c.l1_bytes = static_cast<uint32_t>(c.number("memory.l1_bytes"));
  c.l0a_bytes = static_cast<uint32_t>(c.number("memory.l0a_bytes"));
  c.l0b_bytes = static_cast<uint32_t>(c.number("memory.l0b_bytes"));
  c.l0c_bytes = static_cast<uint32_t>(c.number("memory.l0c_bytes"));
  c.l2_bytes = c.number("memory.l2_bytes");
  c.hbm_bytes_per_us = c.number("memory.hbm_gb_per_s") * 1e3;
  c.l2_bytes_per_us = c.number("memory.l2_gb_per_s") * 1e3;
  c.gm_request_bytes = c.number("memory.gm_request_bytes");
  c.gm_request_overhead = c.number("memory.gm_request_overhead_bytes");
  c.write_back_cost = c.number("memory.write_back_cost");
  c.same_window_cycles = c.number("memory.same_window_cycles");
  c.mte2_issue = c.number("mte2.issue_cycles");
  c.mte2_latency = c.number("mte2.latency_cycles");
  c.mte2_request_cycles = c.number("mte2.request_cycles");
  c.mte2_bytes_per_cycle = c.number("mte2.bytes_per_cycle");
  c.mte2_l2_bytes_per_cycle = c.number("mte2.l2_bytes_per_cycle");
  c.mte3_issue = c.number("mte3.issue_cycles");
  c.mte3_latency = c.number("mte3.latency_cycles");
  c.mte3_request_cycles = c.number("mte3.request_cycles");
  c.mte3_bytes_per_cycle = c.number("mte3.bytes_per_cycle");
  c.vec_head = c.number("vector.head_cycles");
  c.vec_bytes_per_cycle = c.number("vector.bytes_per_cycle");
  c.vec_write_delay = c.number("vector.write_delay_cycles");
  c.vec_repeats_in_flight = c.number("vector.repeats_in_flight");
  c.vec_drain = c.number("vector.drain_cycles");
  c.scalar_issue = c.number("scalar.issue_cycles");
  c.scalar_local_access = c.number("scalar.ub_access_cycles");
  c.scalar_gm_hit = c.number("scalar.gm_hit_cycles");
  c.scalar_gm_miss = c.number("scalar.gm_miss_cycles");
  c.scalar_flag = c.number("scalar.flag_cycles");
  c.scalar_mask = c.number("scalar.mask_cycles");
  c.scalar_queue = c.number("scalar.queue_cycles");
  c.sync_all = c.number("sync.sync_all_cycles");
  c.launch_base_us = c.number("launch.base_us");
  c.launch_per_core_us = c.number("launch.per_core_us");
  c.core_head_us = c.number("launch.core_head_us");
  c.core_fetch_us = c.number("launch.core_fetch_us");
  c.writes_in_flight = static_cast<uint32_t>(c.number("mte3.writes_in_flight"));
  c.queue_depth = static_cast<uint32_t>(c.number("sync.queue_depth"));
  c.event_ids = static_cast<uint32_t>(c.number("sync.event_ids"));
  return c;
}

}  // namespace vnpu
