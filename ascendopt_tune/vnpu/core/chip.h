// Chip: the hardware numbers of one part, read from chips/<name>.toml. Every number lives there with its source.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vnpu/types.h"

namespace vnpu {

// What the scalar unit does; each kind costs a constant of the chip file, section [scalar]. The last ones before Cycle
// are of the high-level Matmul; files of one's own may be older than those. Cycle: one instruction of one cycle.
enum class ScalarKind : uint8_t {
  Issue,
  Load,         // of local memory or from the data cache, behind anything but a load
  LocalAgain,   // of local memory, straight behind a load
  GmAgain,      // from the data cache, straight behind a load
  Store,        // to local memory or to a line in the data cache
  GmMiss,       // a line that the data cache lacks, for a load or a store
  GmMissAgain,  // the same for a load straight behind a load
  TilingWord,   // 8 bytes of tiling data, on their way to the stack
  Flag,
  Mask,
  QueueRing,    // a call of a queue that holds several tensors
  QueueSingle,  // of one that holds one
  Buffer,
  MatmulStart,
  MatmulTiling,
  Message,
  Cycle,
  kCount
};
constexpr int kScalarKinds = static_cast<int>(ScalarKind::kCount);

// One row of a table of instructions: the pipe is busy for head + pace * units cycles (a row without a pace for its
// head); its result takes `result` more, where that is less than 0 as many as its pipe's do.
struct InstructionCost {
  std::string name;  // "Add.float"
  double head, pace, result = -1;
};

struct Chip {
  std::string name;
  std::map<std::string, std::string> values;  // flattened "section.key"

  // The value of `key`; throws std::runtime_error naming chip and key when it is missing or not a number.
  double number(const std::string& key) const;
  std::string text(const std::string& key) const;

  // The same chip with other values of some constants ("launch.base_us=0.6 vector.head_cycles=23"). Throws
  // std::runtime_error for a key that the chip doesn't have or a value that is no number.
  Chip with(const std::string& assignments) const;

  // The row of the table for this call and type: `api.type`, else `api.any`, else row 0, the default. The number of a
  // row is the same for every chip made by with().
  uint16_t instruction(const char* api, DType type) const;

  // Of L2, what the data of kernels get to keep.
  double l2_kept_bytes() const { return l2_bytes * (1 - l2_lost_share); }

  // The numbers the model needs on every instruction, read once. Cycles are of the core clock.
  double clock_mhz, hbm_bytes_per_us, l2_bytes_per_us, l2_bytes, l2_lost_share;
  double mte2_issue, mte2_latency, mte2_hbm_latency, mte2_request_cycles, mte2_l2_request_cycles, mte2_same_line_cycles,
      mte2_same_block_cycles, mte2_padded_cycles;
  double mte2_bytes_per_cycle, mte2_l2_bytes_per_cycle;
  double mte3_issue, mte3_latency, mte3_request_cycles, mte3_same_line_cycles, mte3_same_line_bytes,
      mte3_bytes_per_cycle;
  double mte2_past_l2_factor;  // of the cycles that a piece takes when it is read past L2, to L1 as well
  // Rows that become tiles on the way to L1: a window from HBM, a row from L2, a row that begins inside of a window and
  // goes on into the next one.
  double nd2nz_request_cycles, nd2nz_bytes_per_cycle, nd2nz_same_line_cycles, nd2nz_l2_request_cycles,
      nd2nz_crossing_cycles;
  double fix_issue, fix_latency, fix_request_cycles, fix_partial_cycles, fix_bytes_per_cycle, unit_flag_overlap;
  double gm_request_bytes, gm_request_overhead, write_back_cost, same_window_cycles, few_bytes_most,
      few_bytes_read_cycles, few_bytes_write_cycles;
  double mte1_result, mac_result;
  double vec_write_delay, vec_repeats_in_flight, vec_result, vec_dependence, vec_barrier, vec_floor;
  double sync_all, group_flag, mixed_start_us, launch_base_us, launch_dispatch_us, launch_fetch_us, launch_tiling_us,
      core_head_us, operator_head_us, flushed_fetch_us, flushed_tiling_us, flushed_head_us, flushed_dirty_share,
      flushed_page_us, flushed_cube_page_us, page_bytes, cold_head_us;
  std::array<double, kScalarKinds> scalar;
  std::vector<InstructionCost> instructions;
  uint32_t queue_depth;
  uint32_t aiv, aic;
  uint32_t ub_bytes, l1_bytes, l0a_bytes, l0b_bytes, l0c_bytes, bias_table_bytes, fixpipe_buffer_bytes;
  uint32_t ub_reserved_bytes;
  uint32_t event_ids;                     // of each pair of pipes
  uint32_t cross_flags, cross_flag_most;  // flags between cores, and how often one may be raised without a wait
  uint32_t l2_line_bytes, gm_cut_bytes;
  uint32_t dcache_bytes, dcache_line_bytes, dcache_ways;
  uint32_t ub_bank_groups, ub_bank_rows;  // blocks go to the groups in turn; after so many, to a group's next bank
  uint32_t system_counter_mhz;
  uint32_t launch_at_once;  // cores whose first fetches are served together

 private:
  friend Chip load_chip(const std::string& name);
  void read();
  void read_rows(const std::string& table, double offset, double factor);
  static constexpr size_t kAnyType = static_cast<size_t>(DType::None) + 1;
  // Of an instruction's name: the row of each dtype, and the one of any; 0 where there is none.
  std::map<std::string, std::array<uint16_t, kAnyType + 1>, std::less<>> rows_;
};

// Loads <prefix>/chips/<name>.toml, or the file `name` when it ends in .toml. Throws std::runtime_error for an unknown
// chip (lists what exists) or a bad file. Sizes, counts and what
// concerns cube cores, where a file doesn't say it, are its architecture's.
Chip load_chip(const std::string& name);

}  // namespace vnpu
