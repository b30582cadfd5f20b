#include "chip.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "chip_file.h"

namespace vnpu {
namespace {

std::filesystem::path chips_folder() {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&load_chip), &info);
  return std::filesystem::absolute(info.dli_fname).parent_path().parent_path() / "chips";
}

// Numbers that a launch reads, in the order of the files.
struct Binding {
  const char* key;
  double Chip::* number;
  double factor;
};
constexpr Binding kNumbers[] = {
    {"core.clock_mhz", &Chip::clock_mhz, 1},
    {"memory.l2_bytes", &Chip::l2_bytes, 1},
    {"memory.hbm_gb_per_s", &Chip::hbm_bytes_per_us, 1e3},
    {"memory.l2_gb_per_s", &Chip::l2_bytes_per_us, 1e3},
    {"memory.gm_request_bytes", &Chip::gm_request_bytes, 1},
    {"memory.gm_request_overhead_bytes", &Chip::gm_request_overhead, 1},
    {"memory.write_back_cost", &Chip::write_back_cost, 1},
    {"memory.same_window_cycles", &Chip::same_window_cycles, 1},
    {"mte2.issue_cycles", &Chip::mte2_issue, 1},
    {"mte2.latency_cycles", &Chip::mte2_latency, 1},
    {"mte2.hbm_latency_cycles", &Chip::mte2_hbm_latency, 1},
    {"mte2.request_cycles", &Chip::mte2_request_cycles, 1},
    {"mte2.l2_request_cycles", &Chip::mte2_l2_request_cycles, 1},
    {"mte2.past_l2_factor", &Chip::mte2_past_l2_factor, 1},
    {"mte2.same_line_cycles", &Chip::mte2_same_line_cycles, 1},
    {"mte2.bytes_per_cycle", &Chip::mte2_bytes_per_cycle, 1},
    {"mte2.l2_bytes_per_cycle", &Chip::mte2_l2_bytes_per_cycle, 1},
    {"mte3.issue_cycles", &Chip::mte3_issue, 1},
    {"mte3.latency_cycles", &Chip::mte3_latency, 1},
    {"mte3.request_cycles", &Chip::mte3_request_cycles, 1},
    {"mte3.same_line_cycles", &Chip::mte3_same_line_cycles, 1},
    {"mte3.bytes_per_cycle", &Chip::mte3_bytes_per_cycle, 1},
    {"vector.write_delay_cycles", &Chip::vec_write_delay, 1},
    {"vector.repeats_in_flight", &Chip::vec_repeats_in_flight, 1},
    {"vector.result_cycles", &Chip::vec_result, 1},
    {"vector.counter_floor_cycles", &Chip::vec_floor, 1},
    {"vector.dependence_cycles", &Chip::vec_dependence, 1},
    {"vector.barrier_cycles", &Chip::vec_barrier, 1},
    {"sync.sync_all_cycles", &Chip::sync_all, 1},
    {"launch.base_us", &Chip::launch_base_us, 1},
    {"launch.dispatch_us", &Chip::launch_dispatch_us, 1},
    {"launch.fetch_us", &Chip::launch_fetch_us, 1},
    {"launch.tiling_us", &Chip::launch_tiling_us, 1},
    {"launch.core_head_us", &Chip::core_head_us, 1},
    {"flushed.fetch_us", &Chip::flushed_fetch_us, 1},
    {"flushed.tiling_us", &Chip::flushed_tiling_us, 1},
    {"flushed.core_head_us", &Chip::flushed_head_us, 1},
    {"cold.core_head_us", &Chip::cold_head_us, 1},
};

// What files of one's own may be older than: cube cores, in tables of their own, what an operator's start costs, short
// pieces of a line and of a window, dirty lines of the kernel before, and what L2 keeps for itself.
constexpr Binding kLaterNumbers[] = {
    {"launch.operator_head_us", &Chip::operator_head_us, 1},
    {"mte2.same_block_cycles", &Chip::mte2_same_block_cycles, 1},
    {"mte2.padded_cycles", &Chip::mte2_padded_cycles, 1},
    {"mte3.same_line_bytes", &Chip::mte3_same_line_bytes, 1},
    {"memory.l2_lost_share", &Chip::l2_lost_share, 1},
    {"flushed.dirty_share", &Chip::flushed_dirty_share, 1},
    {"flushed.page_us", &Chip::flushed_page_us, 1},
    {"flushed.cube_page_us", &Chip::flushed_cube_page_us, 1},
    {"memory.page_bytes", &Chip::page_bytes, 1},
    {"memory.few_bytes_most", &Chip::few_bytes_most, 1},
    {"memory.few_bytes_read_cycles", &Chip::few_bytes_read_cycles, 1},
    {"memory.few_bytes_write_cycles", &Chip::few_bytes_write_cycles, 1},
    {"mixed.group_flag_cycles", &Chip::group_flag, 1},
    {"mixed.start_us", &Chip::mixed_start_us, 1},
    {"nd2nz.request_cycles", &Chip::nd2nz_request_cycles, 1},
    {"nd2nz.bytes_per_cycle", &Chip::nd2nz_bytes_per_cycle, 1},
    {"nd2nz.l2_request_cycles", &Chip::nd2nz_l2_request_cycles, 1},
    {"nd2nz.same_line_cycles", &Chip::nd2nz_same_line_cycles, 1},
    {"nd2nz.crossing_cycles", &Chip::nd2nz_crossing_cycles, 1},
    {"fixpipe.issue_cycles", &Chip::fix_issue, 1},
    {"fixpipe.latency_cycles", &Chip::fix_latency, 1},
    {"fixpipe.request_cycles", &Chip::fix_request_cycles, 1},
    {"fixpipe.partial_cycles", &Chip::fix_partial_cycles, 1},
    {"fixpipe.bytes_per_cycle", &Chip::fix_bytes_per_cycle, 1},
    {"fixpipe.unit_flag_overlap", &Chip::unit_flag_overlap, 1},
    {"mte1.result_cycles", &Chip::mte1_result, 1},
    {"mac.result_cycles", &Chip::mac_result, 1},
};

struct Count {
  const char* key;
  uint32_t Chip::* number;
};
constexpr Count kCounts[] = {
    {"core.aiv", &Chip::aiv},
    {"core.aic", &Chip::aic},
    {"core.system_counter_mhz", &Chip::system_counter_mhz},
    {"launch.at_once", &Chip::launch_at_once},
    {"memory.ub_bytes", &Chip::ub_bytes},
    {"memory.ub_reserved_bytes", &Chip::ub_reserved_bytes},
    {"memory.l1_bytes", &Chip::l1_bytes},
    {"memory.l0a_bytes", &Chip::l0a_bytes},
    {"memory.l0b_bytes", &Chip::l0b_bytes},
    {"memory.l0c_bytes", &Chip::l0c_bytes},
    {"memory.bias_table_bytes", &Chip::bias_table_bytes},
    {"memory.fixpipe_buffer_bytes", &Chip::fixpipe_buffer_bytes},
    {"sync.queue_depth", &Chip::queue_depth},
    {"sync.event_ids", &Chip::event_ids},
    {"sync.cross_flags", &Chip::cross_flags},
    {"sync.cross_flag_most", &Chip::cross_flag_most},
    {"memory.l2_line_bytes", &Chip::l2_line_bytes},
    {"memory.gm_cut_bytes", &Chip::gm_cut_bytes},
    {"memory.ub_bank_groups", &Chip::ub_bank_groups},
    {"memory.ub_bank_rows", &Chip::ub_bank_rows},
    {"scalar.dcache_bytes", &Chip::dcache_bytes},
    {"scalar.dcache_line_bytes", &Chip::dcache_line_bytes},
    {"scalar.dcache_ways", &Chip::dcache_ways},
};

constexpr const char* kScalarKeys[kScalarKinds] = {"issue_cycles",
                                                   "load_cycles",
                                                   "ub_load_again_cycles",
                                                   "gm_load_again_cycles",
                                                   "store_cycles",
                                                   "gm_miss_cycles",
                                                   "gm_miss_again_cycles",
                                                   "tiling_word_cycles",
                                                   "flag_cycles",
                                                   "mask_cycles",
                                                   "queue_cycles",
                                                   "queue_single_cycles",
                                                   "buffer_cycles",
                                                   "matmul_start_cycles",
                                                   "matmul_tiling_cycles",
                                                   "message_cycles",
                                                   ""};

std::string scalar_key(int kind) { return std::string("scalar.") + kScalarKeys[kind]; }

constexpr const char* kTypes[] = {"float",  "half",  "bfloat16", "int8",   "uint8", "int16",     "uint16", "int32",
                                  "uint32", "int64", "uint64",   "double", "bool",  "complex64", "int4",   "none"};
static_assert(std::size(kTypes) == static_cast<size_t>(DType::None) + 1);

const std::string kTable = "instructions.", kCubeTable = "cube_instructions.";

}  // namespace

std::string Chip::text(const std::string& key) const {
  auto it = values.find(key);
  if (it == values.end()) throw std::runtime_error("chip file " + name + ".toml has no value `" + key + "`");
  return it->second;
}

double Chip::number(const std::string& key) const {
  const std::string value = text(key);
  try {
    return std::stod(value);
  } catch (const std::exception&) {
    throw std::runtime_error("chip file " + name + ".toml: `" + key + "` is `" + value + "`, expected a number");
  }
}

uint16_t Chip::instruction(const char* api, DType type) const {
  const auto it = rows_.find(api);
  if (it == rows_.end()) return 0;
  const uint16_t own = it->second[static_cast<size_t>(type)];
  return own != 0 ? own : it->second[kAnyType];
}

Chip Chip::with(const std::string& assignments) const {
  Chip out = *this;
  std::istringstream in(assignments);
  for (std::string word; in >> word;) {
    const size_t eq = word.find('=');
    const std::string key = word.substr(0, eq);
    if (eq == std::string::npos || !out.values.count(key))
      throw std::runtime_error("chip " + name + " has no constant `" + key + "`");
    out.values[key] = word.substr(eq + 1);
  }
  out.read();
  return out;
}

void Chip::read() {
  for (const Binding& b : kNumbers) this->*b.number = number(b.key) * b.factor;
  for (const Binding& b : kLaterNumbers) this->*b.number = number(b.key) * b.factor;
  for (const Count& c : kCounts) this->*c.number = static_cast<uint32_t>(number(c.key));
  for (int i = 0; i + 1 < kScalarKinds; i++) scalar[static_cast<size_t>(i)] = number(scalar_key(i));
  scalar[static_cast<int>(ScalarKind::Cycle)] = 1;
  // Errors that all figures of the table share (an instrument's) are errors of these two.
  const double offset = number("vector.head_offset_cycles"), factor = number("vector.pace_factor");
  instructions.assign(1, {"default", offset + number("vector.head_cycles"), factor});
  rows_.clear();
  read_rows(kTable, offset, factor);
  read_rows(kCubeTable, 0, 1);
}

void Chip::read_rows(const std::string& table, double offset, double factor) {
  for (auto it = values.lower_bound(table); it != values.end() && it->first.compare(0, table.size(), table) == 0;
       ++it) {
    const std::string& key = it->first;
    const std::string suffix = ".head";
    if (key.size() < suffix.size() || key.compare(key.size() - suffix.size(), suffix.size(), suffix) != 0) continue;
    const std::string row = key.substr(table.size(), key.size() - table.size() - suffix.size());
    const size_t dot = row.rfind('.');
    const std::string type = row.substr(dot + 1);
    const auto* known = std::find(std::begin(kTypes), std::end(kTypes), type);
    if (dot != std::string::npos && (known != std::end(kTypes) || type == "any"))
      rows_[row.substr(0, dot)][type == "any" ? kAnyType : static_cast<size_t>(known - kTypes)] =
          static_cast<uint16_t>(instructions.size());
    const std::string result = table + row + ".result", pace = table + row + ".pace";
    instructions.push_back({row, offset + number(key), values.count(pace) ? factor * number(pace) : 0,
                            values.count(result) ? number(result) : -1});
  }
}

namespace {

// What concerns cube cores alone, and other numbers that files may lack.
std::vector<std::string> later_keys() {
  std::vector<std::string> keys;
  for (const Binding& b : kLaterNumbers) keys.emplace_back(b.key);
  for (int i = static_cast<int>(ScalarKind::MatmulStart); i + 1 < kScalarKinds; i++) keys.push_back(scalar_key(i));
  return keys;
}
bool is_later(const std::string& key) {
  const std::vector<std::string> keys = later_keys();
  return key.compare(0, kCubeTable.size(), kCubeTable) == 0 || std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Files that inherit nothing (`calibrate` writes such) may be older than a size or count of the architecture, and than
// its cube cores.
void add_architecture(std::map<std::string, std::string>& values, const std::filesystem::path& folder) {
  const auto missing = [&](const Count& c) { return values.count(c.key) == 0; };
  const auto arch = values.find("chip.arch");
  const std::vector<std::string> keys = later_keys();
  const bool numbers =
      std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return values.count(key) != 0; });
  if (arch == values.end() || (numbers && std::none_of(std::begin(kCounts), std::end(kCounts), missing))) return;
  const auto file = folder / "architecture" / (arch->second + ".toml");
  if (!std::filesystem::is_regular_file(file)) return;
  auto common = read_chip_file(file, folder);
  for (const Count& c : kCounts)
    if (missing(c) && common.count(c.key)) values[c.key] = common[c.key];
  for (const auto& [key, value] : common)
    if (is_later(key)) values.emplace(key, value);
}

}  // namespace

Chip load_chip(const std::string& name) {
  const auto folder = chips_folder();
  const std::string ending = ".toml";
  const bool is_file =
      name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
  const auto file = is_file ? std::filesystem::path(name) : folder / (name + ending);
  if ((!is_file && name.find('/') != std::string::npos) || !std::filesystem::is_regular_file(file)) {
    std::string known;
    std::error_code ec;
    for (auto& f : std::filesystem::directory_iterator(folder, ec))
      if (f.path().extension() == ending) known += " " + f.path().stem().string();
    throw std::runtime_error("unknown chip `" + name + "`; known chips:" + (known.empty() ? " none" : known));
  }
  Chip c;
  c.name = is_file ? file.stem().string() : name;
  c.values = read_chip_file(file, folder);
  add_architecture(c.values, folder);
  c.read();
  return c;
}

}  // namespace vnpu
