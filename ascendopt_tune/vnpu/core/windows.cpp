#include "windows.h"

#include <algorithm>

namespace vnpu {
namespace {

// Calls `each` with the window of every request of few bytes; reads and writes of a window are told apart. Pieces that
// are one stretch of GM are one request: with Transpose's pieces of 6 bytes four cores don't wait for each other.
template <typename F>
void for_each_short(const Transfer& t, const Chip& chip, F each) {
  const bool joined = t.burst_stride == t.burst_bytes;
  const uint64_t bytes = joined ? uint64_t{t.bursts} * t.burst_bytes : t.burst_bytes;
  if (static_cast<double>(bytes) > chip.few_bytes_most) return;
  const auto window = static_cast<uint64_t>(chip.gm_request_bytes);
  for (uint64_t b = 0; b < (joined ? 1 : t.bursts); b++)
    each((t.gm_addr + b * t.burst_stride) / window * 2 + (t.write ? 1 : 0));
}

}  // namespace

Meetings meetings_of(const std::vector<const Trace*>& traces, const Chip& chip) {
  constexpr size_t kSeveral = ~size_t{0};
  std::unordered_map<uint64_t, size_t> cores;  // of each window: the core, or kSeveral
  for (size_t i = 0; i < traces.size(); i++)
    for (const Transfer& t : traces[i]->transfers)
      for_each_short(t, chip, [&](uint64_t window) {
        const auto [at, fresh] = cores.emplace(window, i);
        if (!fresh && at->second != i) at->second = kSeveral;
      });
  Meetings out(traces.size());
  for (size_t i = 0; i < traces.size(); i++) {
    const std::vector<Transfer>& transfers = traces[i]->transfers;
    for (size_t j = 0; j < transfers.size(); j++)
      for_each_short(transfers[j], chip, [&](uint64_t window) {
        if (cores[window] != kSeveral) return;
        if (out[i].empty()) out[i].assign(transfers.size(), false);
        out[i][j] = true;
      });
  }
  return out;
}

double Windows::delay(int core, const Transfer& t, double now, double alone) {
  const double takes = t.write ? chip_.few_bytes_write_cycles : chip_.few_bytes_read_cycles;
  const double pace = alone / std::max(t.bursts, 1u);
  double at = now, waited = 0;
  for_each_short(t, chip_, [&](uint64_t window) {
    Window& w = windows_[window];
    if (w.core != core && w.free > at) {
      waited += w.free - at;
      at = w.free;
    }
    w.free = std::max(w.free, at) + takes;
    w.core = core;
    at += pace;
  });
  return waited;
}

}  // namespace vnpu
