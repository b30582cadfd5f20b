// Writes a timeline in the Chrome trace event format, which Perfetto and MindStudio Insight open.
//
// Times become whole nanoseconds first: viewers round, and slices of one thread that overlap by a rounding error are
// dropped there. An arrow (a pair of flow events) has to begin and end inside slices.
#include "timeline.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <memory>

#include "report.h"
#include "timing.h"

namespace vnpu {
namespace {

constexpr int kTaskProcess = 100000;  // behind every core

struct Close {
  void operator()(FILE* f) const { fclose(f); }
};

// One event per line, so that a file of half a gigabyte can still be searched with grep.
class Events {
 public:
  explicit Events(FILE* out) : out_(out) {}
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    fputs(first_ ? "" : ",\n", out_);
    first_ = false;
    va_list values;
    va_start(values, format);
    vfprintf(out_, format, values);
    va_end(values);
  }
  void name(const char* what, int pid, int tid, const std::string& text) {
    add("{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":%s}}", what, pid, tid,
        quoted(text).c_str());
    add("{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}}", what, pid, tid,
        what[0] == 'p' ? (pid == kTaskProcess ? -1 : pid) : tid);
  }
  void slice(int pid, int tid, long begin, long end, const std::string& name, const char* category,
             const std::string& args) {
    add("{\"ph\":\"X\",\"name\":%s,\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%ld.%03ld,\"dur\":%ld.%03ld,"
        "\"args\":{%s}}",
        quoted(name).c_str(), category, pid, tid, begin / 1000, begin % 1000, (end - begin) / 1000,
        (end - begin) % 1000, args.c_str());
  }
  void arrow(char phase, int pid, int tid, long at, long id, const std::string& name) {
    add("{\"ph\":\"%c\",\"name\":%s,\"cat\":\"flag\",\"id\":%ld,\"pid\":%d,\"tid\":%d,\"ts\":%ld.%03ld%s}", phase,
        quoted(name).c_str(), id, pid, tid, at / 1000, at % 1000, phase == 'f' ? ",\"bp\":\"e\"" : "");
  }

 private:
  FILE* out_;
  bool first_ = true;
};

std::string pipe_title(int pipe) {
  switch (static_cast<Pipe>(pipe)) {
    case Pipe::S:
      return "S (scalar)";
    case Pipe::V:
      return "V (vector)";
    case Pipe::MTE2:
      return "MTE2 (GM to UB)";
    case Pipe::MTE3:
      return "MTE3 (UB to GM)";
    default:
      return pipe_name(static_cast<Pipe>(pipe));
  }
}

// Slices of one thread may not overlap: a copy whose data are still under way ends where the next one begins, and the
// pipe waits only from when it has nothing under way.
template <typename SameTrack>
std::vector<Span> apart(const std::vector<Span>& sorted, SameTrack same) {
  std::vector<Span> out;
  double busy = 0;
  for (size_t i = 0; i < sorted.size(); i++) {
    Span s = sorted[i];
    if (i == 0 || !same(sorted[i - 1], s)) busy = 0;
    if (s.kind == Span::kInstruction) {
      size_t next = i + 1;
      while (next < sorted.size() && same(s, sorted[next]) && sorted[next].kind != Span::kInstruction) next++;
      if (next < sorted.size() && same(s, sorted[next])) s.end = std::min(s.end, sorted[next].begin);
      busy = s.end;
    } else {
      s.begin = std::max(s.begin, busy);
    }
    if (s.end > s.begin) out.push_back(s);
  }
  return out;
}

}  // namespace

Timeline::Timeline(const std::vector<const Trace*>& blocks, const Groups& groups)
    : cores(blocks.size()), groups_(groups) {
  size_t records = 0;
  for (size_t i = 0; i < blocks.size(); i++) {
    cores[i] = static_cast<int>(i);  // of a later wave: set when it starts
    records += blocks[i]->records.size();
    if (i == 0 || records <= kRecords) shown_ = static_cast<int>(i) + 1;
  }
}

std::string Timeline::left_out() const {
  std::string text;
  int blocks = static_cast<int>(cores.size());
  if (shown_ < blocks)
    text = "what blocks " + std::to_string(shown_) + " to " + std::to_string(blocks - 1) + " of " +
           std::to_string(blocks) + " did in detail (each is one bar)";
  if (spans.size() >= kSpans)
    text += (text.empty() ? "" : ", and ") + std::string("what block 0 did after its first ") + std::to_string(kSpans) +
            " instructions, waits and stretches of scalar work";
  return text;
}

namespace {

// Where things of a timeline are shown: one process per core with a thread of blocks, and one per pipe.
struct Tracks {
  const std::vector<int>& cores;
  const Groups& groups;
  double cycles_per_us;

  int process(int block) const { return cores[static_cast<size_t>(block)] + 1; }
  static int thread(Pipe pipe) { return static_cast<int>(pipe) + 1; }
  int of(int block, Pipe pipe) const { return cores[static_cast<size_t>(block)] * kPipes + static_cast<int>(pipe); }
  bool before(const Span& a, const Span& b) const {
    int x = of(a.block, a.pipe), y = of(b.block, b.pipe);
    return x != y ? x < y : a.begin < b.begin;
  }
  long ns(double cycles) const { return std::lround(cycles / cycles_per_us * 1000); }
};

void block_slices(Events& events, const Tracks& tracks, const TaskTimes& times, int shown) {
  std::vector<bool> named(tracks.cores.size());
  for (size_t i = 0; i < tracks.cores.size(); i++) {
    const int core = tracks.cores[i], pid = core + 1;
    if (!named[static_cast<size_t>(core)]) {
      named[static_cast<size_t>(core)] = true;
      events.name("process", pid, 0, tracks.groups.name(core));
      events.name("thread", pid, 0, "block");
    }
    const CoreTimes& c = times.cores[i];
    events.slice(pid, 0, tracks.ns(c.start), tracks.ns(c.end),
                 "block " + std::to_string(tracks.groups.block(static_cast<int>(i))), "block",
                 static_cast<int>(i) < shown ? "" : "\"note\":\"not shown in detail\"");
  }
}

std::string title(const Span& s) {
  const std::string name = s.name ? s.name : "?";
  if (s.kind != Span::kWait) return name;
  return "waits" + (s.awaited == Pipe::kCount ? "" : std::string(" for ") + pipe_name(s.awaited)) + " (" + name + ")";
}

const char* category(const Span& s) {
  if (s.kind == Span::kInstruction) return "instruction";
  return s.kind == Span::kWait ? "wait" : "scalar";
}

void write_spans(Events& events, const Tracks& tracks, const std::vector<Span>& sorted) {
  int last = -1;
  for (const Span& s : sorted) {
    const int pid = tracks.process(s.block), tid = Tracks::thread(s.pipe);
    if (tracks.of(s.block, s.pipe) != last) {
      last = tracks.of(s.block, s.pipe);
      events.name("thread", pid, tid, pipe_title(static_cast<int>(s.pipe)));
    }
    std::string args = "\"pc\":" + site_offset(s.pc);
    if (s.bytes) args += ",\"bytes\":" + std::to_string(s.bytes);
    events.slice(pid, tid, tracks.ns(s.begin), tracks.ns(s.end), title(s), category(s), args);
  }
}

// From the work that was complete when the flag was raised to the first that could begin when it was seen. Returns
// whether there is something at both ends.
bool write_arrow(Events& events, const Tracks& tracks, const std::vector<Span>& sorted, const Flow& f, long id) {
  const auto first_of = [&](Pipe pipe, double from) {
    const Span key{f.block, pipe, Span::kScalar, from, 0, nullptr, nullptr};
    return std::lower_bound(sorted.begin(), sorted.end(), key,
                            [&](const Span& a, const Span& b) { return tracks.before(a, b); });
  };
  auto from = first_of(f.src, f.raised), to = first_of(f.dst, f.seen);
  if (from == sorted.begin() || to == sorted.end()) return false;
  --from;
  if (tracks.of(from->block, from->pipe) != tracks.of(f.block, f.src) ||
      tracks.of(to->block, to->pipe) != tracks.of(f.block, f.dst))
    return false;
  const long begin = tracks.ns(from->begin), end = std::min(tracks.ns(from->end), tracks.ns(f.raised));
  if (end <= begin || tracks.ns(to->end) <= tracks.ns(to->begin)) return false;
  const std::string name = std::string(pipe_name(f.src)) + "_" + pipe_name(f.dst) +
                           (f.id < 0 ? " automatic" : " event " + std::to_string(f.id));
  const int pid = tracks.process(f.block);
  events.arrow('s', pid, Tracks::thread(f.src), end - 1, id, name);
  events.arrow('f', pid, Tracks::thread(f.dst), tracks.ns(to->begin), id, name);
  return true;
}

}  // namespace

bool Timeline::write(const char* path, const TaskTimes& times, const std::string& kernel, const std::string& chip,
                     double cycles_per_us) const {
  std::unique_ptr<FILE, Close> out(fopen(path, "w"));
  if (!out) return false;
  const Tracks tracks{cores, groups_, cycles_per_us};
  fprintf(out.get(), "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"time\":\"modelled\",\"kernel\":%s,\"chip\":%s,",
          quoted(kernel).c_str(), quoted(chip).c_str());
  fprintf(out.get(), "\"blocks\":%zu,\"left_out\":%s},\n\"traceEvents\":[\n", cores.size(), quoted(left_out()).c_str());
  Events events(out.get());
  events.name("process", kTaskProcess, 0, "task (modelled time)");
  events.slice(kTaskProcess, 0, 0, tracks.ns(times.cycles), kernel, "task",
               "\"blocks\":" + std::to_string(cores.size()));
  block_slices(events, tracks, times, shown_);
  std::vector<Span> sorted = spans;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Span& a, const Span& b) { return tracks.before(a, b); });
  sorted = apart(
      sorted, [&](const Span& a, const Span& b) { return tracks.of(a.block, a.pipe) == tracks.of(b.block, b.pipe); });
  write_spans(events, tracks, sorted);
  long id = 0;
  for (const Flow& f : flows) id += write_arrow(events, tracks, sorted, f, id);
  fputs("\n]}\n", out.get());
  return fflush(out.get()) == 0 && !ferror(out.get());
}

}  // namespace vnpu
