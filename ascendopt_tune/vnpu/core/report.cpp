#include "report.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

#include "launch.h"

namespace vnpu {
namespace {

thread_local std::string last_json = "{}";
thread_local Report last;

std::string number(double v) {
  char b[40];
  snprintf(b, sizeof b, "%.10g", v);
  return b;
}

}  // namespace

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char b[8];
      snprintf(b, sizeof b, "\\u%04x", c);
      out += b;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string site_offset(const void* pc) {
  Dl_info info;
  if (!pc || !dladdr(pc, &info)) return "null";
  return std::to_string(static_cast<const char*>(pc) - static_cast<const char*>(info.dli_fbase) - 1);
}

namespace {

std::string site(const AccessSite& s, int core) {
  return std::string("{\"pipe\":\"") + pipe_name(s.pipe) + "\",\"api\":" + quoted(s.api ? s.api : "") +
         ",\"access\":\"" + (s.write ? "write" : "read") + "\",\"core\":" + std::to_string(core) +
         ",\"pc\":" + site_offset(s.pc) + "}";
}

const char* kind_name(KernelError::Kind kind) {
  switch (kind) {
    case KernelError::kOutOfBounds:
      return "out_of_bounds";
    case KernelError::kDeadlock:
      return "deadlock";
    case KernelError::kUnsupported:
      return "unsupported";
    default:
      return "misuse";
  }
}

// `,"name":value` for each: why pipes with work stood still, in microseconds, means over the cores.
std::string stall_fields(const TaskTimes& times, double clock, double cores) {
  static const char* const names[] = {"scalar", "vec", "mte1", "mte2", "mte3", "cube", "fixpipe"};
  double queue = 0, all_pipes = 0, sync = 0, shortest = 0, longest = 0, first = times.cycles, last = 0, starts = 0;
  double waits[kPipes][kPipes] = {};
  for (const CoreTimes& c : times.cores) {
    for (int p = 0; p < kPipes; p++)
      for (int q = 0; q < kPipes; q++) waits[p][q] += c.waits[p][q];
    queue += c.queue_full;
    all_pipes += c.all_pipes;
    sync += c.sync_all;
    shortest = longest == 0 ? c.end - c.first : std::min(shortest, c.end - c.first);
    longest = std::max(longest, c.end - c.first);
    starts += c.first - c.start;
    first = std::min(first, c.first);
    last = std::max(last, c.end);
  }
  std::string out;
  auto add = [&](const std::string& name, double cycles) { out += ",\"" + name + "\":" + number(cycles / clock); };
  for (int p = 0; p < kPipes; p++)
    for (int q = 0; q < kPipes; q++)
      if (waits[p][q] > 0) add(std::string("stall_") + names[p] + "_on_" + names[q] + "_us", waits[p][q] / cores);
  add("stall_scalar_on_full_queue_us", queue / cores);
  add("stall_scalar_on_all_pipes_us", all_pipes / cores);
  add("stall_sync_all_us", sync / cores);
  add("core_start_us", starts / cores);
  add("block_time_min_us", shortest);
  add("block_time_max_us", longest);
  add("cores_active_us", last - first);
  return out;
}

}  // namespace

void Report::profile(const std::vector<const Trace*>& traces, CoreKind cores, const Chip& chip) {
  kind = cores;
  double clock = chip.clock_mhz;
  double n = std::min(static_cast<double>(traces.size()), static_cast<double>(cores_of(kind, chip)));
  cycles_per_us = clock;
  pipes = mean_times(times, kind, chip);
  task_duration_us = pipes.task;
  for (const CoreTimes& c : times.cores) stall_gm_us += c.stall_gm / clock / n;
  stalls = stall_fields(times, clock, n);
  for (const Trace* t : traces) {
    conflict_cycles += t->conflict_cycles;
    mte2_bytes += static_cast<double>(t->mte2_bytes);
    written_bytes += static_cast<double>(t->mte3_bytes);
    for (const Record& r : t->records) {
      if (r.kind != Record::kInstr) continue;
      instructions++;
      issued[static_cast<size_t>(r.pipe)]++;
    }
  }
}

// Under msprof's names, which tell the kind of core.
std::string Report::profile_json() const {
  const auto count = [this](Pipe pipe) { return number(issued[static_cast<size_t>(pipe)]); };
  std::string out = ",\"profile\":{\"task_duration_us\":" + number(task_duration_us);
  if (kind == CoreKind::Vector)
    out += ",\"aiv_time_us\":" + number(pipes.core) + ",\"aiv_vec_time_us\":" + number(pipes.vec) +
           ",\"aiv_scalar_time_us\":" + number(pipes.scalar) + ",\"aiv_mte2_time_us\":" + number(pipes.mte2) +
           ",\"aiv_mte3_time_us\":" + number(pipes.mte3);
  else
    out += ",\"aic_time_us\":" + number(pipes.core) + ",\"aic_mac_time_us\":" + number(pipes.mac) +
           ",\"aic_scalar_time_us\":" + number(pipes.scalar) + ",\"aic_mte1_time_us\":" + number(pipes.mte1) +
           ",\"aic_mte2_time_us\":" + number(pipes.mte2) + ",\"aic_fixpipe_time_us\":" + number(pipes.fixpipe);
  out += ",\"block_dim\":" + std::to_string(block_dim) + ",\"counters\":{\"mte2_bytes\":" + number(mte2_bytes);
  if (kind == CoreKind::Vector)
    out += ",\"mte3_bytes\":" + number(written_bytes) + ",\"bank_conflict_cycles\":" + number(conflict_cycles) +
           ",\"instructions\":" + number(instructions) + ",\"vec_instructions\":" + count(Pipe::V) +
           ",\"mte2_copies\":" + count(Pipe::MTE2) + ",\"mte3_copies\":" + count(Pipe::MTE3);
  else
    out += ",\"fixpipe_bytes\":" + number(written_bytes) + ",\"instructions\":" + number(instructions) +
           ",\"mac_instructions\":" + count(Pipe::M) + ",\"mte1_instructions\":" + count(Pipe::MTE1) +
           ",\"mte2_copies\":" + count(Pipe::MTE2) + ",\"fixpipe_copies\":" + count(Pipe::FIX);
  return out + ",\"stall_gm_bandwidth_us\":" + number(stall_gm_us) + stalls +
         ",\"l2_hit_bytes\":" + number(times.l2_hit_bytes) + ",\"l2_miss_bytes\":" + number(times.l2_miss_bytes) + "}}";
}

std::string Report::json() const {
  std::string out = "{\"kernel\":" + quoted(kernel) + ",\"block_dim\":" + std::to_string(block_dim) +
                    ",\"status\":" + std::to_string(status) + ",\"message\":" + quoted(message);
  out += profile_json();
  out += ",\"slack\":[";
  for (size_t i = 0; i < slack.size(); i++)
    out += (i ? "," : "") + std::string("{\"buffer\":") + quoted(slack[i].buffer) +
           ",\"write\":" + (slack[i].write ? "true" : "false") + ",\"bytes\":" + std::to_string(slack[i].bytes) + "}";
  out += "],\"hazards\":[";
  for (size_t i = 0; i < hazards.size(); i++) {
    const HazardReport& h = hazards[i];
    out += (i ? "," : "") + std::string("{\"memory\":\"") + (h.gm ? "GM" : memory_name(h.memory)) +
           "\",\"begin\":" + std::to_string(h.begin) + ",\"end\":" + std::to_string(h.end) +
           ",\"buffer\":" + quoted(h.buffer) + ",\"first\":" + site(h.first, h.first_core) +
           ",\"second\":" + site(h.second, h.second_core) + ",\"missing\":" + quoted(h.missing) + "}";
  }
  out += "],\"unwritten\":[";
  for (size_t i = 0; i < unwritten.size(); i++) {
    const UnwrittenUse& u = unwritten[i];
    out += (i ? "," : "") + std::string("{\"memory\":\"") + (u.origin_gm ? "GM" : memory_name(u.memory)) +
           "\",\"begin\":" + std::to_string(u.begin) + ",\"end\":" + std::to_string(u.end) +
           ",\"first\":" + site(u.origin, u.core) + ",\"sink\":" + site(u.sink, u.core) +
           ",\"sink_begin\":" + std::to_string(u.sink_begin) + ",\"sink_end\":" + std::to_string(u.sink_end) +
           ",\"buffer\":" + quoted(u.buffer) + ",\"sink_buffer\":" + quoted(u.sink_buffer) + "}";
  }
  out += "],\"errors\":[";
  for (size_t i = 0; i < errors.size(); i++)
    out += (i ? "," : "") + std::string("{\"kind\":\"") + kind_name(errors[i].kind) +
           "\",\"message\":" + quoted(errors[i].what()) + ",\"api\":" + quoted(errors[i].api ? errors[i].api : "") +
           ",\"pc\":" + site_offset(errors[i].pc) + "}";
  out += "],\"relies_on\":[";
  for (size_t i = 0; i < relies_on.size(); i++) out += (i ? "," : "") + quoted(relies_on[i]);
  return out + "]}";
}

void publish(Report&& report) {
  last_json = report.json();
  last = std::move(report);
}

}  // namespace vnpu

extern "C" {

const char* vnpu_last_report() { return vnpu::last_json.c_str(); }

int vnpu_trace_json(const char* path) {
  const vnpu::Report& r = vnpu::last;
  if (r.timeline.empty()) return 1;
  return r.timeline.write(path, r.times, r.kernel, r.chip, r.cycles_per_us) ? 0 : 1;
}

}  // extern "C"
