// One core in the pipe timing model: its scalar unit walks the trace in program order and hands instructions to one
// FIFO per pipe. GM transfers that can start go to the shared memory system, which says when they are done.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "bandwidth.h"
#include "chip.h"
#include "costs.h"
#include "cross_flags.h"
#include "timeline.h"
#include "timing.h"
#include "trace.h"

namespace vnpu {

// A transfer whose instruction has begun: the memory system gets it at `time`.
struct Arrival {
  double time;
  int core;
  Pipe pipe;
  uint32_t number;          // of the instruction on its pipe, from 1
  size_t transfer;          // of the core's trace
  bool translated = false;  // the addresses of its pages are known
  bool operator<(const Arrival& o) const {
    return time != o.time ? time > o.time : core != o.core ? core > o.core : pipe > o.pipe;
  }
};
using Arrivals = std::priority_queue<Arrival>;

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

class CoreSim {
 public:
  // `sharers`: how many cores make each transfer of the trace with the same address; empty where it shares none.
  CoreSim(int index, const Trace& trace, const std::vector<uint16_t>& sharers, const Bandwidth& bandwidth,
          CrossFlags<double>& cross, const Chip& chip, Timeline* timeline)
      : index_(index),
        trace_(trace),
        sharers_(sharers),
        bandwidth_(bandwidth),
        cross_(cross),
        chip_(chip),
        costs_(trace, chip),
        flags_(kPipes * kPipes * chip.event_ids),
        timeline_(timeline) {}

  // The block is handed to a core at `now`; its first instruction is there at `fetched`, and MTE2 has been busy for
  // `loading` cycles of that with tiling data.
  void start(double now, double fetched, double loading) {
    times_.start = now;
    times_.loading = loading;
    times_.busy[static_cast<int>(Pipe::MTE2)] += loading;
    scalar_ = times_.first = fetched;
    if (shown()) timeline_->spans.push_back({index_, Pipe::S, Span::kWait, now, fetched, "start of the core", nullptr});
    if (shown() && loading > 0)
      timeline_->spans.push_back(
          {index_, Pipe::MTE2, Span::kInstruction, fetched - loading, fetched, "tiling data", nullptr});
  }
  // Goes as far as known times allow; GM transfers that can start are added to `arrivals`.
  void advance(Arrivals& arrivals);
  // The data of the copy that `pipe` is executing have been moved at `now`; it goes on when its requests are through,
  // too. `resident`: the part that was in L2 (0..1). `delay`: how long its requests waited for those of other cores.
  void transfer_done(Pipe pipe, double now, double resident, double delay);
  // What the requests of the copy that `pipe` is executing take where no other core asks for the same windows.
  double request_cycles(Pipe pipe, double resident) const {
    return request_cycles(trace_.records[pipes_[static_cast<int>(pipe)].queue.front().record], resident);
  }

  double end() const { return std::max(scalar_ + costs_.scalar_tail(), complete_all()); }
  bool finished() const { return next_ == trace_.records.size() && idle(); }
  bool at_sync(Scope scope) const { return syncing_ && idle() && scope_of(trace_.records[next_]) == scope; }
  double sync_time();
  void leave_sync(double now);
  CoreTimes result();
  // The trace has got more records, nothing else of it has changed.
  void extend() { costs_.extend(); }
  // Whether the scalar unit is through with every record; when it was.
  bool through() const { return next_ == trace_.records.size() && !syncing_; }
  double scalar_time() const { return scalar_; }
  std::string waiting(const Groups& groups) const;
  // The flag between cores that the scalar unit waits for: who gets it, and its number.
  std::optional<std::pair<int, int>> awaited() const;

 private:
  struct Queued {
    size_t record;
    double issued;
  };
  struct PipeState {
    Fifo<Queued> queue;
    double free = 0;                    // when the next instruction may start
    double complete = 0;                // when everything that is done was done
    double copied = 0;                  // when its last instruction ended, without what it waited for since
    bool held = false;                  // MTE2: behind a write (held_by_write)
    double busy_until = 0;              // as the pipe's busy time counts it
    bool moving = false;                // the head is in a GM transfer
    double start = 0;                   // of the head, while it is moving
    double all_made = 0;                // what the head takes as it is made; 0: it takes it as a whole
    uint32_t pieces = 1;                // of that
    std::vector<double> starts, dones;  // per instruction; done is kNever while it is under way
  };

  Fifo<double>& flag(const Record& r) {
    return flags_[(static_cast<size_t>(r.src) * kPipes + static_cast<size_t>(r.pipe)) * chip_.event_ids + r.id];
  }
  static bool done(const PipeState& p, size_t number) {
    return p.dones.size() >= number && p.dones[number - 1] != kNever;
  }
  bool idle() const;
  double complete_all() const;
  bool shown() const { return timeline_ && timeline_->shows(index_); }
  double& scalar_wait(Pipe src) { return times_.waits[0][static_cast<int>(src)]; }

  double request_cycles(const Record& r, double resident) const;  // what the requests of a copy take
  double rearranging_cycles(const Transfer& t, double resident) const;
  double shared_cycles(const Record& r, double own) const;  // where other cores ask for the same windows
  double issue_cycles(Pipe pipe) const;                     // of a copy
  double result_cycles(Pipe pipe,
                       const Record& r) const;  // from the end of an instruction to the end of its result's way
  double first_piece(const PipeState& src, const Record& r) const;  // of what `src` hands over as it goes
  static double end_of_last_piece(PipeState& p, double start, double free);
  void finish(Pipe pipe, PipeState& p, const Record& r, double start, double free, double done);
  void pipe_waits(Pipe pipe, double now, double until, const Record& r, Pipe src);
  void scalar_waits(double until, const Record& r, Pipe src, double& counter);
  void scalar_works(double cycles, const void* pc);
  void seen(const Record& r, Pipe dst, double raised, double at);
  void raise(const Record& r, double at);
  bool held_by_write(double now, PipeState& in, const Record& r);
  void enqueue(Pipe pipe) {
    pipes_[static_cast<int>(pipe)].queue.push_back({next_, scalar_});
    ready_ |= 1u << static_cast<int>(pipe);
  }
  bool step_pipe(Pipe pipe, Arrivals& arrivals);
  inline bool step_instruction(Pipe pipe, double now, const Record& r, Arrivals& arrivals);
  inline bool step_wait(Pipe pipe, double now, const Record& r);
  inline bool step_depend(Pipe pipe, double now, const Record& r);
  inline void step_barrier(Pipe pipe, double now, const Record& r);
  bool step_scalar();
  inline bool dispatch(const Record& r);
  inline bool issue(const Record& r);
  inline void scalar_sets(const Record& r);
  inline bool scalar_awaits_flag(const Record& r);
  inline bool scalar_depends(const Record& r);
  inline bool scalar_awaits_cores(const Record& r);
  inline bool scalar_awaits_pipes(const Record& r);

  int index_;
  const Trace& trace_;
  const std::vector<uint16_t>& sharers_;
  const Bandwidth& bandwidth_;
  CrossFlags<double>& cross_;
  const Chip& chip_;
  Costs costs_;
  double scalar_ = 0;
  size_t next_ = 0;
  bool counted_ = false, syncing_ = false;
  uint32_t ready_ = 0;  // a bit per pipe: something is queued and no transfer is under way
  std::array<PipeState, kPipes> pipes_;
  std::vector<Fifo<double>> flags_;  // times at which an event was raised and not yet waited for
  CoreTimes times_;
  Timeline* timeline_;
  size_t scalar_span_ = 0;  // the latest span of scalar work, and where it ends
  double scalar_end_ = -1;
};

}  // namespace vnpu
