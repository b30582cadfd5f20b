#include "timing.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>

namespace vnpu {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// GM bandwidth shared by all cores. Transfers of one class progress at one rate, so a class needs a single counter of
// bytes served; a transfer is done when the counter has grown by its size.
class Bandwidth {
 public:
  struct Done {
    int core;
    Pipe pipe;
  };

  explicit Bandwidth(const Chip& c) : hbm_(c.hbm_bytes_per_us / c.clock_mhz), l2_(c.l2_bytes_per_us / c.clock_mhz) {
    cap_[0] = c.mte2_bytes_per_cycle;
    cap_[1] = c.mte2_l2_bytes_per_cycle;
    cap_[2] = c.mte3_bytes_per_cycle;
    cap_[3] = c.mte3_l2_bytes_per_cycle;
  }

  void arrive(double now, double bytes, bool write, bool hit, Done done) {
    serve(now);
    int k = (write ? 2 : 0) + (hit ? 1 : 0);
    classes_[k].waiting.push({classes_[k].served + bytes, sequence_++, done});
    update_rates();
  }

  // Time of the next completion, kNever when nothing moves.
  double next() const {
    double best = kNever;
    for (const Class& c : classes_)
      if (!c.waiting.empty()) best = std::min(best, now_ + std::max(0.0, c.waiting.top().target - c.served) / c.rate);
    return best;
  }

  Done finish() {
    int best = -1;
    double when = kNever;
    for (int k = 0; k < kClasses; k++) {
      const Class& c = classes_[k];
      if (c.waiting.empty()) continue;
      double t = now_ + std::max(0.0, c.waiting.top().target - c.served) / c.rate;
      if (t < when) when = t, best = k;
    }
    serve(when);
    Class& c = classes_[best];
    c.served = std::max(c.served, c.waiting.top().target);
    Done done = c.waiting.top().done;
    c.waiting.pop();
    update_rates();
    return done;
  }

 private:
  static constexpr int kClasses = 4;  // read/write x HBM/L2
  struct Item {
    double target;
    uint64_t sequence;
    Done done;
    bool operator<(const Item& o) const { return target != o.target ? target > o.target : sequence > o.sequence; }
  };
  struct Class {
    double served = 0, rate = 0;
    std::priority_queue<Item> waiting;
  };

  void serve(double now) {
    double dt = now - now_;
    if (dt > 0)
      for (Class& c : classes_)
        if (!c.waiting.empty()) c.served += c.rate * dt;
    now_ = std::max(now_, now);
  }

  void update_rates() {
    double miss = 0, all = 0;
    for (int k = 0; k < kClasses; k++) {
      double n = static_cast<double>(classes_[k].waiting.size());
      all += n;
      if (k % 2 == 0) miss += n;
    }
    for (int k = 0; k < kClasses; k++) {
      double rate = cap_[k];
      if (all > 0) rate = std::min(rate, l2_ / all);
      if (k % 2 == 0 && miss > 0) rate = std::min(rate, hbm_ / miss);
      classes_[k].rate = rate;
    }
  }

  double hbm_, l2_, now_ = 0;
  double cap_[kClasses];
  Class classes_[kClasses];
  uint64_t sequence_ = 0;
};

struct Arrival {
  double time;
  int core;
  Pipe pipe;
  const Transfer* transfer;
  bool operator<(const Arrival& o) const {
    return time != o.time ? time > o.time : core != o.core ? core > o.core : pipe > o.pipe;
  }
};

// First in, first out, in one piece of memory that is used again and again.
template <typename T>
class Fifo {
 public:
  bool empty() const { return begin_ == end_; }
  const T& front() const { return items_[begin_ & (items_.size() - 1)]; }
  void pop_front() { begin_++; }
  void push_back(const T& item) {
    if (end_ - begin_ == items_.size()) grow();
    items_[end_++ & (items_.size() - 1)] = item;
  }

 private:
  void grow() {
    std::vector<T> larger(std::max<size_t>(2, 2 * items_.size()));  // a power of two
    for (size_t i = begin_; i < end_; i++) larger[i & (larger.size() - 1)] = items_[i & (items_.size() - 1)];
    items_ = std::move(larger);
  }

  std::vector<T> items_;
  size_t begin_ = 0, end_ = 0;
};

struct Queued {
  const Record* record;
  double issued;
};

struct PipeState {
  Fifo<Queued> queue;
  double free = 0;                    // when the next instruction may start
  double complete = 0;                // when everything so far is complete (a flag set now is raised then)
  bool moving = false;                // the head is in a GM transfer
  double start = 0;                   // of the head, while it is moving
  std::vector<double> starts, dones;  // per instruction
};

class CoreSim {
 public:
  CoreSim(int index, const Trace& trace, const Chip& chip, Timeline* timeline)
      : index_(index), trace_(trace), chip_(chip), flags_(kPipes * kPipes * chip.event_ids), timeline_(timeline) {}

  void start(double now) { scalar_ = times_.start = now; }

  // Goes as far as known times allow; GM transfers that can start are added to `arrivals`.
  void advance(std::priority_queue<Arrival>& arrivals) {
    bool progress = true;
    while (progress) {
      progress = false;
      for (int p = 1; p < kPipes; p++)
        while (step_pipe(static_cast<Pipe>(p), arrivals)) progress = true;
      while (step_scalar()) progress = true;
    }
  }

  void transfer_done(Pipe pipe, double now) {
    PipeState& p = pipes_[static_cast<int>(pipe)];
    const Record& r = *p.queue.front().record;
    p.moving = false;
    bool in = pipe == Pipe::MTE2;
    double alone = trace_.transfers[r.transfer].bytes / (in ? chip_.mte2_bytes_per_cycle : chip_.mte3_bytes_per_cycle);
    times_.stall_gm += std::max(0.0, now - p.start - r.cycles - alone);
    finish(pipe, p, r, p.start, now, now + (in ? chip_.mte2_latency : chip_.mte3_latency));
    p.queue.pop_front();
  }

  double end() const { return std::max(scalar_ + trace_.scalar_tail, complete_all()); }
  bool finished() const { return next_ == trace_.records.size() && idle(); }
  bool at_sync() const { return syncing_ && idle(); }
  double sync_time() {
    scalar_waits(complete_all(), trace_.records[next_], Pipe::kCount, times_.all_pipes);
    return scalar_;
  }
  void leave_sync(double now) {
    scalar_waits(now, trace_.records[next_], Pipe::kCount, times_.sync_all);
    syncing_ = false;
    next_++;
  }
  CoreTimes result() {
    times_.end = end();
    scalar_works(trace_.scalar_tail, nullptr);
    return times_;
  }
  std::string waiting() const {
    const Record& r = trace_.records[std::min(next_, trace_.records.size() - 1)];
    return "core " + std::to_string(index_) + " at " + (r.api ? r.api : "?");
  }

 private:
  Fifo<double>& flag(const Record& r) {
    return flags_[(static_cast<size_t>(r.src) * kPipes + static_cast<size_t>(r.pipe)) * chip_.event_ids + r.id];
  }

  bool idle() const {
    for (const PipeState& p : pipes_)
      if (!p.queue.empty()) return false;
    return true;
  }

  double complete_all() const {
    double t = 0;
    for (const PipeState& p : pipes_) t = std::max(t, p.complete);
    return t;
  }

  void finish(Pipe pipe, PipeState& p, const Record& r, double start, double free, double done) {
    times_.busy[static_cast<int>(pipe)] += std::max(0.0, done - std::max(start, p.complete));
    p.free = free;
    p.complete = std::max(p.complete, done);
    p.starts.push_back(start);
    p.dones.push_back(done);
    if (shown())
      timeline_->spans.push_back({index_, pipe, Span::kInstruction, start, done, r.api, r.pc, Pipe::kCount,
                                  r.transfer < 0 ? 0 : trace_.transfers[r.transfer].bytes});
  }

  bool shown() const { return timeline_ && timeline_->shows(index_); }

  // `pipe`, free at `now`, may go on at `until`: by then `src` has got to where `r` wants it.
  void pipe_waits(Pipe pipe, double now, double until, const Record& r, Pipe src) {
    PipeState& p = pipes_[static_cast<int>(pipe)];
    p.free = std::max(now, until);
    times_.waits[static_cast<int>(pipe)][static_cast<int>(src)] += std::max(0.0, until - std::max(now, p.complete));
    if (shown() && until > now) timeline_->spans.push_back({index_, pipe, Span::kWait, now, until, r.api, r.pc, src});
  }

  // `counter` is where the waiting is counted.
  void scalar_waits(double until, const Record& r, Pipe src, double& counter) {
    if (until <= scalar_) return;
    counter += until - scalar_;
    if (shown()) timeline_->spans.push_back({index_, Pipe::S, Span::kWait, scalar_, until, r.api, r.pc, src});
    scalar_ = until;
  }

  double& scalar_wait(Pipe src) { return times_.waits[0][static_cast<int>(src)]; }

  void scalar_works(double cycles, const void* pc) {
    double begin = scalar_;
    times_.busy[0] += cycles;
    scalar_ += cycles;
    if (cycles <= 0 || !shown()) return;
    if (begin == scalar_end_) {
      timeline_->spans[scalar_span_].end = scalar_;  // goes on where the last one ended
    } else {
      scalar_span_ = timeline_->spans.size();
      timeline_->spans.push_back({index_, Pipe::S, Span::kScalar, begin, scalar_, "scalar", pc});
    }
    scalar_end_ = scalar_;
  }

  void seen(const Record& r, Pipe dst, double raised, double at) {
    if (shown()) timeline_->flows.push_back({index_, r.src, dst, r.kind == Record::kDepend ? -1 : r.id, raised, at});
  }

  bool step_pipe(Pipe pipe, std::priority_queue<Arrival>& arrivals) {
    PipeState& p = pipes_[static_cast<int>(pipe)];
    if (p.queue.empty() || p.moving) return false;
    Queued q = p.queue.front();
    const Record& r = *q.record;
    double now = std::max(q.issued, p.free);
    switch (r.kind) {
      case Record::kInstr:
        if (r.transfer >= 0) {
          p.moving = true;
          p.start = now;
          arrivals.push({now + r.cycles, index_, pipe, &trace_.transfers[r.transfer]});
          return false;
        }
        finish(pipe, p, r, now, now + r.cycles, now + r.cycles);
        break;
      case Record::kSetFlag:
        flag(r).push_back(std::max(now, p.complete));
        break;
      case Record::kWaitFlag:
        if (flag(r).empty()) return false;
        pipe_waits(pipe, now, flag(r).front(), r, r.src);
        seen(r, pipe, flag(r).front(), p.free);
        flag(r).pop_front();
        break;
      case Record::kDepend: {
        const PipeState& src = pipes_[static_cast<int>(r.src)];
        if (r.src != Pipe::S) {
          if (src.dones.size() < r.epoch) return false;
          pipe_waits(pipe, now, src.dones[r.epoch - 1], r, r.src);
          seen(r, pipe, src.dones[r.epoch - 1], p.free);
        }
        break;
      }
      default:  // kBarrier: the next instruction waits for the memory effects of the earlier ones
        pipe_waits(pipe, now, p.complete, r, pipe);
        break;
    }
    p.queue.pop_front();
    return true;
  }

  bool step_scalar() {
    if (next_ == trace_.records.size() || syncing_) return false;
    const Record& r = trace_.records[next_];
    if (!counted_) {
      scalar_works(r.scalar_before, r.pc);
      counted_ = true;
    }
    switch (r.kind) {
      case Record::kInstr: {
        PipeState& p = pipes_[static_cast<int>(r.pipe)];
        if (r.epoch > chip_.queue_depth) {  // the queue is full until an older instruction has started
          size_t older = r.epoch - chip_.queue_depth - 1;
          if (p.starts.size() <= older) return false;
          scalar_waits(p.starts[older], r, r.pipe, times_.queue_full);
        }
        p.queue.push_back({&r, scalar_});
        break;
      }
      case Record::kSetFlag:
        if (r.src == Pipe::S)
          flag(r).push_back(scalar_);
        else
          pipes_[static_cast<int>(r.src)].queue.push_back({&r, scalar_});
        break;
      case Record::kWaitFlag:
        if (r.pipe == Pipe::S) {
          if (flag(r).empty()) return false;
          scalar_waits(flag(r).front(), r, r.src, scalar_wait(r.src));
          seen(r, Pipe::S, flag(r).front(), scalar_);
          flag(r).pop_front();
        } else {
          pipes_[static_cast<int>(r.pipe)].queue.push_back({&r, scalar_});
        }
        break;
      case Record::kDepend:
        if (r.pipe == Pipe::S) {
          const PipeState& src = pipes_[static_cast<int>(r.src)];
          if (src.dones.size() < r.epoch) return false;
          scalar_waits(src.dones[r.epoch - 1], r, r.src, scalar_wait(r.src));
          seen(r, Pipe::S, src.dones[r.epoch - 1], scalar_);
        } else {
          pipes_[static_cast<int>(r.pipe)].queue.push_back({&r, scalar_});
        }
        break;
      case Record::kBarrier:
        pipes_[static_cast<int>(r.pipe)].queue.push_back({&r, scalar_});
        break;
      case Record::kBarrierAll:
        if (!idle()) return false;
        scalar_waits(complete_all(), r, Pipe::kCount, times_.all_pipes);
        break;
      case Record::kSyncAll:
        syncing_ = true;
        counted_ = false;
        return true;
      case Record::kScalar:
        break;
    }
    next_++;
    counted_ = false;
    return true;
  }

  int index_;
  const Trace& trace_;
  const Chip& chip_;
  double scalar_ = 0;
  size_t next_ = 0;
  bool counted_ = false, syncing_ = false;
  std::array<PipeState, kPipes> pipes_;
  std::vector<Fifo<double>> flags_;  // times at which an event was raised and not yet waited for
  CoreTimes times_;
  Timeline* timeline_;
  size_t scalar_span_ = 0;  // the latest span of scalar work, and where it ends
  double scalar_end_ = -1;
};

}  // namespace

double& L2State::last(uint64_t page) {
  uint64_t chunk = page / kChunk;
  if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
  if (!chunks_[chunk]) {
    chunks_[chunk].reset(new double[kChunk]);
    std::fill_n(chunks_[chunk].get(), kChunk, -1.0);
  }
  return chunks_[chunk][page % kChunk];
}

double L2State::touch(const Transfer& t, const Chip& chip) {
  constexpr uint32_t kSampledBursts = 64;
  uint32_t step = std::max(1u, t.bursts / kSampledBursts);
  double pages = 0, hits = 0;
  traffic_ += t.bytes;
  uint64_t page_bytes = static_cast<uint64_t>(chip.l2_page_bytes);
  for (uint32_t b = 0; b < t.bursts; b += step) {
    uint64_t begin = t.gm_addr + b * t.burst_stride;
    uint64_t last = (begin + std::max(1u, t.burst_bytes) - 1) / page_bytes;
    for (uint64_t page = begin / page_bytes; page <= last; page++) {
      double& touched = this->last(page);
      pages++;
      if (touched >= 0 && traffic_ - touched <= chip.l2_bytes) hits++;
      touched = traffic_;
    }
  }
  return pages > 0 ? hits / pages : 1;
}

TaskTimes simulate(const std::vector<const Trace*>& traces, const Chip& chip, L2State& l2, Timeline* timeline) {
  TaskTimes out;
  std::vector<CoreSim> cores;
  cores.reserve(traces.size());
  for (size_t i = 0; i < traces.size(); i++) cores.emplace_back(static_cast<int>(i), *traces[i], chip, timeline);
  if (timeline) *timeline = Timeline(traces);

  Bandwidth bandwidth(chip);
  std::priority_queue<Arrival> arrivals;
  // Blocks are handed out one after another. As many as there are cores run at once; each further one starts where an
  // earlier one has ended.
  double head = chip.core_head_us * chip.clock_mhz, per_core = chip.launch_per_core_us * chip.clock_mhz;
  size_t started = std::min<size_t>(traces.size(), chip.aiv);
  std::vector<bool> ended(traces.size());
  auto advance = [&](size_t i) {
    for (size_t block = i;;) {
      cores[block].advance(arrivals);
      if (ended[block] || !cores[block].finished()) return;
      ended[block] = true;
      if (started == cores.size()) return;
      double free = cores[block].end();
      if (timeline) timeline->cores[started] = timeline->cores[block];
      block = started++;
      cores[block].start(head + std::max(free, per_core * static_cast<double>(block)));
    }
  };
  auto meet = [&] {  // all cores at SyncAll: let them go together
    double latest = 0;
    for (CoreSim& c : cores) {
      if (!c.at_sync()) return false;
      latest = std::max(latest, c.sync_time());
    }
    for (CoreSim& c : cores) c.leave_sync(latest + chip.sync_all);
    for (size_t i = 0; i < cores.size(); i++) advance(i);
    return true;
  };
  size_t first_wave = started;
  for (size_t i = 0; i < first_wave; i++) cores[i].start(head + per_core * static_cast<double>(i));
  for (size_t i = 0; i < first_wave; i++) advance(i);
  while (true) {
    double arrival = arrivals.empty() ? kNever : arrivals.top().time;
    double completion = bandwidth.next();
    if (arrival == kNever && completion == kNever) {
      if (meet()) continue;
      break;
    }
    if (arrival <= completion) {
      Arrival a = arrivals.top();
      arrivals.pop();
      const Transfer& t = *a.transfer;
      double resident = l2.touch(t, chip);
      out.l2_hit_bytes += resident * t.bytes;
      out.l2_miss_bytes += (1 - resident) * t.bytes;
      bandwidth.arrive(a.time, t.bytes, t.write, resident > 0.5, {a.core, a.pipe});
    } else {
      Bandwidth::Done done = bandwidth.finish();
      cores[static_cast<size_t>(done.core)].transfer_done(done.pipe, completion);
      advance(static_cast<size_t>(done.core));
    }
  }
  double end = 0;
  for (CoreSim& c : cores) {
    if (!c.finished() && out.deadlock.empty()) out.deadlock = c.waiting() + " waits for something that never happens";
    out.cores.push_back(c.result());
    end = std::max(end, out.cores.back().end);
  }
  out.cycles = end + chip.launch_base_us * chip.clock_mhz;
  return out;
}

}  // namespace vnpu
