// Chip: the hardware numbers of one part, read from chips/<name>.toml. Every number lives there with its source.
#pragma once
#include <map>
#include <string>

namespace vnpu {

struct Chip {
  std::string name;
  std::map<std::string, std::string> values;  // flattened "section.key"

  // The value of `key`; throws std::runtime_error naming chip and key when it is missing or not a number.
  double number(const char* key) const;
  std::string text(const char* key) const;

  // The numbers the model needs on every instruction, read once. Cycles are of the core clock.
  double clock_mhz, hbm_bytes_per_us, l2_bytes_per_us, l2_bytes;
  double mte2_issue, mte2_latency, mte2_request_cycles, mte2_bytes_per_cycle, mte2_l2_bytes_per_cycle;
  double mte3_issue, mte3_latency, mte3_request_cycles, mte3_bytes_per_cycle;
  double gm_request_bytes, gm_request_overhead, write_back_cost, same_window_cycles;
  double vec_head, vec_bytes_per_cycle, vec_write_delay, vec_repeats_in_flight, vec_drain;
  double scalar_issue, scalar_local_access, scalar_gm_hit, scalar_gm_miss, scalar_flag, scalar_mask, scalar_queue;
  double sync_all, launch_base_us, launch_per_core_us, core_head_us, core_fetch_us;
  uint32_t writes_in_flight;
  uint32_t queue_depth;
  uint32_t aiv, aic;
  uint32_t ub_bytes, l1_bytes, l0a_bytes, l0b_bytes, l0c_bytes;
  uint32_t ub_reserved_bytes;
  uint32_t event_ids;
};

// Loads <prefix>/chips/<name>.toml. Throws std::runtime_error for an unknown chip (lists what exists) or a bad file.
Chip load_chip(const std::string& name);

}  // namespace vnpu
