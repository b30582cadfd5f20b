#include "report.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

#include "launch.h"

namespace vnpu {
namespace {

thread_local std::string last_json = "{}";
thread_local Report last_report;

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

std::string site(const AccessSite& s, int core, const Groups& groups) {
  return std::string("{\"pipe\":\"") + pipe_name(s.pipe) + "\",\"api\":" + quoted(s.api ? s.api : "") +
         ",\"access\":\"" + (s.write ? "write" : "read") +
         "\",\"core\":" + (groups.mixed() ? quoted(groups.name(core)) : std::to_string(core)) +
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

// `,"name":value` for each: why pipes with work stood still, in microseconds, means over the `n` cores of a kind.
class Stalls {
 public:
  explicit Stalls(double task) : first_(task) {}
  void add(const CoreTimes& c) {
    for (int p = 0; p < kPipes; p++)
      for (int q = 0; q < kPipes; q++) waits_[p][q] += c.waits[p][q];
    queue_ += c.queue_full;
    all_pipes_ += c.all_pipes;
    sync_ += c.sync_all;
    shortest_ = longest_ == 0 ? c.end - c.first : std::min(shortest_, c.end - c.first);
    longest_ = std::max(longest_, c.end - c.first);
    starts_ += c.first - c.start;
    loading_ += c.loading;
    first_ = std::min(first_, c.first);
    last_ = std::max(last_, c.end);
  }
  std::string fields(double clock, double n, bool mixed) const {
    static const char* const names[] = {"scalar", "vec", "mte1", "mte2", "mte3", "cube", "fixpipe"};
    std::string out;
    auto add = [&](const std::string& name, double cycles) { out += ",\"" + name + "\":" + number(cycles / clock); };
    for (int p = 0; p < kPipes; p++)
      for (int q = 0; q < kPipes; q++)
        if (waits_[p][q] > 0) add(std::string("stall_") + names[p] + "_on_" + names[q] + "_us", waits_[p][q] / n);
    add("stall_scalar_on_full_queue_us", queue_ / n);
    add("stall_scalar_on_all_pipes_us", all_pipes_ / n);
    add(mixed ? "stall_between_cores_us" : "stall_sync_all_us", sync_ / n);
    add("core_start_us", starts_ / n);
    add("core_loading_us", loading_ / n);
    add("block_time_min_us", shortest_);
    add("block_time_max_us", longest_);
    add("cores_active_us", last_ - first_);
    return out;
  }

 private:
  double queue_ = 0, all_pipes_ = 0, sync_ = 0, shortest_ = 0, longest_ = 0, first_, last_ = 0, starts_ = 0,
         loading_ = 0;
  double waits_[kPipes][kPipes] = {};
};

Report::OfKind of_kind(CoreKind kind, const Report& report, const std::vector<const Trace*>& traces, const Chip& chip) {
  const Groups& groups = report.groups;
  const double clock = chip.clock_mhz;
  const double n = std::min(static_cast<double>(groups.cores(kind)), static_cast<double>(cores_of(kind, chip)));
  Report::OfKind out{kind, mean_times(report.times, groups, kind, chip), ""};
  Stalls stalls(report.times.cycles);
  for (size_t i = 0; i < traces.size(); i++) {
    if (groups.kind(static_cast<int>(i)) != kind) continue;
    const Trace& t = *traces[i];
    stalls.add(report.times.cores[i]);
    out.stall_gm_us += report.times.cores[i].stall_gm / clock / n;
    out.conflict_cycles += t.conflict_cycles;
    out.mte2_bytes += static_cast<double>(t.mte2_bytes);
    out.written_bytes += static_cast<double>(t.mte3_bytes);
    for (const Record& r : t.records) {
      if (r.kind != Record::kInstr) continue;
      out.instructions++;
      out.issued[static_cast<size_t>(r.pipe)]++;
    }
  }
  out.stalls = stalls.fields(clock, n, groups.mixed());
  return out;
}

std::string hazards_json(const std::vector<HazardReport>& hazards, const Groups& groups) {
  std::string out;
  for (const HazardReport& h : hazards)
    out += (out.empty() ? "" : ",") + std::string("{\"memory\":\"") + (h.gm ? "GM" : memory_name(h.memory)) +
           "\",\"begin\":" + std::to_string(h.begin) + ",\"end\":" + std::to_string(h.end) +
           ",\"buffer\":" + quoted(h.buffer) + ",\"first\":" + site(h.first, h.first_core, groups) +
           ",\"second\":" + site(h.second, h.second_core, groups) + ",\"missing\":" + quoted(h.missing) + "}";
  return out;
}

// Under msprof's names, which tell the kind of core.
std::string times_json(const Report::OfKind& k) {
  const PipeTimes& p = k.pipes;
  if (k.kind == CoreKind::Vector)
    return ",\"aiv_time_us\":" + number(p.core) + ",\"aiv_vec_time_us\":" + number(p.vec) +
           ",\"aiv_scalar_time_us\":" + number(p.scalar) + ",\"aiv_mte2_time_us\":" + number(p.mte2) +
           ",\"aiv_mte3_time_us\":" + number(p.mte3);
  return ",\"aic_time_us\":" + number(p.core) + ",\"aic_mac_time_us\":" + number(p.mac) +
         ",\"aic_scalar_time_us\":" + number(p.scalar) + ",\"aic_mte1_time_us\":" + number(p.mte1) +
         ",\"aic_mte2_time_us\":" + number(p.mte2) + ",\"aic_fixpipe_time_us\":" + number(p.fixpipe);
}

std::string counters_json(const Report::OfKind& k) {
  const auto count = [&](Pipe pipe) { return number(k.issued[static_cast<size_t>(pipe)]); };
  std::string out = "\"mte2_bytes\":" + number(k.mte2_bytes);
  if (k.kind == CoreKind::Vector)
    out += ",\"mte3_bytes\":" + number(k.written_bytes) + ",\"bank_conflict_cycles\":" + number(k.conflict_cycles) +
           ",\"instructions\":" + number(k.instructions) + ",\"vec_instructions\":" + count(Pipe::V) +
           ",\"mte2_copies\":" + count(Pipe::MTE2) + ",\"mte3_copies\":" + count(Pipe::MTE3);
  else
    out += ",\"fixpipe_bytes\":" + number(k.written_bytes) + ",\"instructions\":" + number(k.instructions) +
           ",\"mac_instructions\":" + count(Pipe::M) + ",\"mte1_instructions\":" + count(Pipe::MTE1) +
           ",\"mte2_copies\":" + count(Pipe::MTE2) + ",\"fixpipe_copies\":" + count(Pipe::FIX);
  return out + ",\"stall_gm_bandwidth_us\":" + number(k.stall_gm_us) + k.stalls;
}

// The same names with `prefix` in front.
std::string prefixed(const std::string& fields, const std::string& prefix) {
  std::string out;
  for (size_t i = 0; i < fields.size(); i++) {
    out += fields[i];
    const bool name = fields[i] == '"' && (i == 0 || fields[i - 1] == ',');
    if (name) out += prefix;
  }
  return out;
}

}  // namespace

void Report::profile(const std::vector<const Trace*>& traces, const Chip& chip) {
  cycles_per_us = chip.clock_mhz;
  task_duration_us = times.cycles / chip.clock_mhz;
  for (const CoreKind kind : {CoreKind::Cube, CoreKind::Vector})
    if (groups.has(kind)) kinds.push_back(of_kind(kind, *this, traces, chip));
}

// Where there are two kinds, counters are the cores' of one kind: aic_mte2_bytes, aiv_mte2_bytes.
std::string Report::profile_json() const {
  std::string out = ",\"profile\":{\"task_duration_us\":" + number(task_duration_us);
  std::vector<OfKind> shown = kinds;
  for (const CoreKind kind : {CoreKind::Cube, CoreKind::Vector})  // nothing was timed
    if (kinds.empty() && groups.has(kind)) shown.push_back({kind, {}, ""});
  for (const OfKind& k : shown) out += times_json(k);
  out += ",\"block_dim\":" + std::to_string(block_dim);
  if (groups.mixed()) out += ",\"vectors_per_block\":" + std::to_string(groups.vectors);
  out += ",\"counters\":{";
  for (const OfKind& k : shown) {
    const std::string fields = counters_json(k);
    out += (groups.mixed() ? prefixed(fields, k.kind == CoreKind::Cube ? "aic_" : "aiv_") : fields) + ",";
  }
  return out + "\"l2_hit_bytes\":" + number(times.l2_hit_bytes) + ",\"l2_miss_bytes\":" + number(times.l2_miss_bytes) +
         "}}";
}

std::string Report::json() const {
  std::string out = "{\"kernel\":" + quoted(kernel) + ",\"block_dim\":" + std::to_string(block_dim) +
                    ",\"status\":" + std::to_string(status) + ",\"message\":" + quoted(message);
  out += profile_json();
  out += ",\"slack\":[";
  for (size_t i = 0; i < slack.size(); i++)
    out += (i ? "," : "") + std::string("{\"buffer\":") + quoted(slack[i].buffer) +
           ",\"write\":" + (slack[i].write ? "true" : "false") + ",\"bytes\":" + std::to_string(slack[i].bytes) + "}";
  out += "],\"hazards\":[" + hazards_json(hazards, groups);
  out += "],\"leaned_on\":[" + hazards_json(leaned_on, groups);
  out += "],\"unwritten\":[";
  for (size_t i = 0; i < unwritten.size(); i++) {
    const UnwrittenUse& u = unwritten[i];
    out += (i ? "," : "") + std::string("{\"memory\":\"") + (u.origin_gm ? "GM" : memory_name(u.memory)) +
           "\",\"begin\":" + std::to_string(u.begin) + ",\"end\":" + std::to_string(u.end) +
           ",\"first\":" + site(u.origin, u.core, groups) + ",\"sink\":" + site(u.sink, u.core, groups) +
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
  last_report = std::move(report);
}

}  // namespace vnpu

extern "C" {

const char* vnpu_last_report() { return vnpu::last_json.c_str(); }

int vnpu_trace_json(const char* path) {
  const vnpu::Report& r = vnpu::last_report;
  if (r.timeline.empty()) return 1;
  return r.timeline.write(path, r.times, r.kernel, r.chip, r.cycles_per_us) ? 0 : 1;
}

}  // extern "C"
