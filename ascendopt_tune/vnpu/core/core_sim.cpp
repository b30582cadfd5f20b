#include "core_sim.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vnpu {

void CoreSim::advance(Arrivals& arrivals) {
  bool progress = true;
  while (progress) {
    progress = false;
    for (int p = kPipes - 1; p > 0; p--)  // MTE3 before MTE2: a write that can begin now goes first
      while ((ready_ >> p & 1) && step_pipe(static_cast<Pipe>(p), arrivals)) progress = true;
    while (step_scalar()) progress = true;
  }
}

double CoreSim::request_cycles(const Record& r, double resident) const {
  const Transfer& t = trace_.transfers[r.transfer];
  if (r.pipe == Pipe::FIX)
    return std::max(t.pieces * chip_.fix_request_cycles + t.partial * chip_.fix_partial_cycles,
                    t.gm_bytes / chip_.fix_bytes_per_cycle);
  const bool in = r.pipe == Pipe::MTE2;
  const double past = in && !t.cached ? chip_.mte2_past_l2_factor : 1;
  if (t.rearranged) return shared_cycles(r, rearranging_cycles(t, resident) * past);
  // A piece that begins in the line in which the one before ended waits for it; on the way out the less, the longer it
  // is itself.
  const double bytes = t.burst_bytes;
  const double less = std::exp(-bytes / chip_.mte3_same_line_bytes);
  const double waits = in ? t.same_line * chip_.mte2_same_line_cycles + t.same_block * chip_.mte2_same_block_cycles +
                                t.padded * chip_.mte2_padded_cycles * less
                          : t.same_line * chip_.mte3_same_line_cycles * less;
  const double each = in ? chip_.mte2_request_cycles * (1 - resident) + chip_.mte2_l2_request_cycles * resident
                         : chip_.mte3_request_cycles;
  return shared_cycles(r, t.pieces * each * past + waits);
}

// Rows that become tiles (ND2NZ). Off the cuts of requests the core takes whole windows apart itself, wherever they
// come from; on them L2 is asked once a row.
double CoreSim::rearranging_cycles(const Transfer& t, double resident) const {
  const double rows = t.pieces - t.off_cuts, bytes = t.pieces == 0 ? 0 : t.bytes * rows / t.pieces;
  const double hbm = (t.requests - t.off_requests) * chip_.nd2nz_request_cycles + bytes / chip_.nd2nz_bytes_per_cycle;
  const double l2 = rows * chip_.nd2nz_l2_request_cycles;
  const double off = chip_.nd2nz_request_cycles + chip_.gm_request_bytes / chip_.nd2nz_bytes_per_cycle;
  return t.off_requests * off + hbm * (1 - resident) + l2 * resident + t.crossing * chip_.nd2nz_crossing_cycles +
         t.same_line * chip_.nd2nz_same_line_cycles;
}

double CoreSim::shared_cycles(const Record& r, double own) const {
  const Transfer& t = trace_.transfers[r.transfer];
  // Requests of several cores to one window of GM are served one after another.
  const double sharers = sharers_.empty() ? 1 : sharers_[static_cast<size_t>(r.transfer)];
  return sharers > 1 ? std::max(own, t.requests * sharers * chip_.same_window_cycles) : own;
}

void CoreSim::transfer_done(Pipe pipe, double now, double resident, double delay) {
  PipeState& p = pipes_[static_cast<int>(pipe)];
  const Record& r = trace_.records[p.queue.front().record];
  const Transfer& t = trace_.transfers[r.transfer];
  const bool in = pipe == Pipe::MTE2;
  p.moving = false;
  ready_ |= 1u << static_cast<int>(pipe);
  const double asked = p.start + issue_cycles(pipe);
  double requested = asked + request_cycles(r, resident) + delay, free = std::max(now, requested);
  double alone = asked + t.gm_bytes / (in                  ? chip_.mte2_bytes_per_cycle
                                       : pipe == Pipe::FIX ? chip_.fix_bytes_per_cycle
                                                           : chip_.mte3_bytes_per_cycle);
  times_.stall_gm += std::max(0.0, free - std::max(requested, alone));
  free = end_of_last_piece(p, p.start, free);
  const double latency = pipe == Pipe::FIX ? chip_.fix_latency
                         : !in             ? chip_.mte3_latency
                                           : chip_.mte2_latency * resident + chip_.mte2_hbm_latency * (1 - resident);
  finish(pipe, p, r, p.start, free, free + latency);
  p.queue.pop_front();
}

double CoreSim::issue_cycles(Pipe pipe) const {
  return pipe == Pipe::MTE2 ? chip_.mte2_issue : pipe == Pipe::FIX ? chip_.fix_issue : chip_.mte3_issue;
}

double CoreSim::result_cycles(Pipe pipe, const Record& r) const {
  const double own = costs_.result(r);
  if (own >= 0) return own;
  return pipe == Pipe::M ? chip_.mac_result : pipe == Pipe::MTE1 ? chip_.mte1_result : chip_.vec_result;
}

double CoreSim::sync_time() {
  scalar_waits(complete_all(), trace_.records[next_], Pipe::kCount, times_.all_pipes);
  return scalar_;
}

void CoreSim::leave_sync(double now) {
  scalar_waits(now, trace_.records[next_], Pipe::kCount, times_.sync_all);
  syncing_ = false;
  next_++;
}

CoreTimes CoreSim::result() {
  times_.end = end();
  scalar_works(costs_.scalar_tail(), nullptr);
  return times_;
}

std::string CoreSim::waiting(const Groups& groups) const {
  const Record& r = trace_.records[std::min(next_, trace_.records.size() - 1)];
  return groups.name(index_) + " at " + (r.api ? r.api : "?");
}

std::optional<std::pair<int, int>> CoreSim::awaited() const {
  if (next_ == trace_.records.size() || trace_.records[next_].kind != Record::kCrossWait) return {};
  return std::pair<int, int>(receiver_of(trace_.records[next_], index_), trace_.records[next_].id);
}

bool CoreSim::idle() const {
  for (const PipeState& p : pipes_)
    if (!p.queue.empty()) return false;
  return true;
}

double CoreSim::complete_all() const {
  double t = 0;
  for (const PipeState& p : pipes_) t = std::max(t, p.complete);
  return t;
}

void CoreSim::finish(Pipe pipe, PipeState& p, const Record& r, double start, double free, double done) {
  double until = pipe == Pipe::V ? free : done;  // profilers count a copy until it is complete
  times_.busy[static_cast<int>(pipe)] += std::max(0.0, until - std::max(start, p.busy_until));
  p.busy_until = std::max(p.busy_until, until);
  p.free = p.copied = free;
  p.complete = std::max(p.complete, done);
  p.starts.push_back(start);
  p.dones.push_back(done);
  if (shown())
    timeline_->spans.push_back({index_, pipe, Span::kInstruction, start, done, r.api, r.pc, Pipe::kCount,
                                r.transfer < 0 ? 0 : trace_.transfers[r.transfer].bytes});
}

// `pipe`, free at `now`, may go on at `until`: by then `src` has got to where `r` wants it.
void CoreSim::pipe_waits(Pipe pipe, double now, double until, const Record& r, Pipe src) {
  PipeState& p = pipes_[static_cast<int>(pipe)];
  p.free = std::max(now, until);
  times_.waits[static_cast<int>(pipe)][static_cast<int>(src)] += std::max(0.0, until - std::max(now, p.complete));
  if (shown() && until > now) timeline_->spans.push_back({index_, pipe, Span::kWait, now, until, r.api, r.pc, src});
}

// `counter` is where the waiting is counted.
void CoreSim::scalar_waits(double until, const Record& r, Pipe src, double& counter) {
  if (until <= scalar_) return;
  counter += until - scalar_;
  if (shown()) timeline_->spans.push_back({index_, Pipe::S, Span::kWait, scalar_, until, r.api, r.pc, src});
  scalar_ = until;
}

void CoreSim::scalar_works(double cycles, const void* pc) {
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

void CoreSim::seen(const Record& r, Pipe dst, double raised, double at) {
  if (shown()) timeline_->flows.push_back({index_, r.src, dst, r.kind == Record::kDepend ? -1 : r.id, raised, at});
}

// The flag that `r` sets is there at `at`.
void CoreSim::raise(const Record& r, double at) {
  if (r.kind == Record::kCrossSet && scope_of(r) == Scope::Memory)
    cross_.arrive(receiver_of(r, index_), r.id, at);
  else if (r.kind == Record::kCrossSet)
    cross_.raise(index_, scope_of(r), r.id, at + (scope_of(r) == Scope::Kind ? chip_.sync_all : chip_.group_flag));
  else
    flag(r).push_back(at);
}

// Write data and read requests leave a core through one port. While HBM is contended, a copy in that finds its pipe
// idle waits until the copy out under way has pushed its data; requests of back-to-back copies left in time. Derived
// from the published add cases: with one core, copies in and out overlap; with 48 cores and one buffer they follow each
// other (core time = MTE2 + V + MTE3); with two buffers they overlap.
bool CoreSim::held_by_write(double now, PipeState& in, const Record& r) {
  const PipeState& out = pipes_[static_cast<int>(Pipe::MTE3)];
  if (out.moving && now > in.copied && bandwidth_.contended()) return in.held = true;
  if (in.held) pipe_waits(Pipe::MTE2, now, out.free, r, Pipe::MTE3);
  return in.held = false;
}

// A copy begins and goes to the memory system; anything else ends when its cycles are over. Returns whether the pipe is
// through with it.
inline bool CoreSim::step_instruction(Pipe pipe, double now, const Record& r, Arrivals& arrivals) {
  PipeState& p = pipes_[static_cast<int>(pipe)];
  if (r.transfer < 0) {
    const double free = end_of_last_piece(p, now, now + costs_.work(r));
    finish(pipe, p, r, now, free, free + result_cycles(pipe, r));
    return true;
  }
  if (pipe == Pipe::MTE2 && held_by_write(now, p, r)) return false;
  now = std::max(now, p.free);
  p.moving = true;
  p.start = now;
  arrivals.push({now + issue_cycles(pipe), index_, pipe, r.epoch, static_cast<size_t>(r.transfer), false});
  return false;
}

inline bool CoreSim::step_wait(Pipe pipe, double now, const Record& r) {
  if (flag(r).empty()) return false;
  pipe_waits(pipe, now, flag(r).front(), r, r.src);
  seen(r, pipe, flag(r).front(), pipes_[static_cast<int>(pipe)].free);
  flag(r).pop_front();
  return true;
}

// asc-devkit, UnitFlag: as soon as a piece of a product is made the pipe behind may take it. Pieces are made at an even
// pace. How much of that a device gains is hardly published: `unit_flag_overlap`.
double CoreSim::first_piece(const PipeState& src, const Record& r) const {
  const double start = src.starts[r.epoch - 1], done = src.dones[r.epoch - 1];
  const double made = start + (done - chip_.mac_result - start) / r.pieces + chip_.mac_result;
  return done - chip_.unit_flag_overlap * (done - made);
}

// What takes pieces as they are made has the last one to do when all are.
double CoreSim::end_of_last_piece(PipeState& p, double start, double free) {
  const double made = std::exchange(p.all_made, 0.0);
  return made == 0 ? free : std::max(free, made + (free - start) / p.pieces);
}

inline bool CoreSim::step_depend(Pipe pipe, double now, const Record& r) {
  if (r.src == Pipe::S) return true;
  const PipeState& src = pipes_[static_cast<int>(r.src)];
  if (!done(src, r.epoch)) return false;
  // The next instruction of a pipe gets the results of the one before without the way through memory.
  double until = src.dones[r.epoch - 1] + (r.src == pipe ? chip_.vec_dependence - chip_.vec_result : 0);
  if (r.pieces > 0) {
    pipes_[static_cast<int>(pipe)].all_made = until;
    pipes_[static_cast<int>(pipe)].pieces = r.pieces;
    until = first_piece(src, r);
  }
  pipe_waits(pipe, now, until, r, r.src);
  seen(r, pipe, until, pipes_[static_cast<int>(pipe)].free);
  return true;
}

// The next instruction waits for the memory effects of the earlier ones.
inline void CoreSim::step_barrier(Pipe pipe, double now, const Record& r) {
  const PipeState& p = pipes_[static_cast<int>(pipe)];
  if (p.dones.empty()) return;
  pipe_waits(pipe, now, pipe == Pipe::V ? std::max(now, p.free) + chip_.vec_barrier : p.complete, r, pipe);
}

bool CoreSim::step_pipe(Pipe pipe, Arrivals& arrivals) {
  PipeState& p = pipes_[static_cast<int>(pipe)];
  if (p.queue.empty() || p.moving) {
    ready_ &= ~(1u << static_cast<int>(pipe));
    return false;
  }
  const Queued q = p.queue.front();
  const Record& r = trace_.records[q.record];
  const double now = std::max(q.issued, p.free);
  bool through = true;
  switch (r.kind) {
    case Record::kInstr:
      through = step_instruction(pipe, now, r, arrivals);
      break;
    case Record::kSetFlag:
    case Record::kCrossSet:
      raise(r, std::max(now, p.complete));
      break;
    case Record::kWaitFlag:
      through = step_wait(pipe, now, r);
      break;
    case Record::kDepend:
      through = step_depend(pipe, now, r);
      break;
    default:  // kBarrier
      step_barrier(pipe, now, r);
      break;
  }
  if (through) p.queue.pop_front();
  return through;
}

// Hands an instruction to its pipe; while the queue is full, until an older instruction has started.
inline bool CoreSim::issue(const Record& r) {
  if (r.epoch > chip_.queue_depth) {
    const PipeState& p = pipes_[static_cast<int>(r.pipe)];
    const size_t older = r.epoch - chip_.queue_depth - 1;
    if (p.starts.size() <= older) return false;
    scalar_waits(p.starts[older], r, r.pipe, times_.queue_full);
  }
  enqueue(r.pipe);
  return true;
}

inline void CoreSim::scalar_sets(const Record& r) {
  if (r.src == Pipe::S)
    flag(r).push_back(scalar_);
  else
    enqueue(r.src);
}

inline bool CoreSim::scalar_awaits_flag(const Record& r) {
  if (flag(r).empty()) return false;
  scalar_waits(flag(r).front(), r, r.src, scalar_wait(r.src));
  seen(r, Pipe::S, flag(r).front(), scalar_);
  flag(r).pop_front();
  return true;
}

inline bool CoreSim::scalar_depends(const Record& r) {
  const PipeState& src = pipes_[static_cast<int>(r.src)];
  if (!done(src, r.epoch)) return false;
  scalar_waits(src.dones[r.epoch - 1], r, r.src, scalar_wait(r.src));
  seen(r, Pipe::S, src.dones[r.epoch - 1], scalar_);
  return true;
}

inline bool CoreSim::scalar_awaits_cores(const Record& r) {
  const int whose = receiver_of(r, index_);
  if (cross_.pending(whose, r.id) == 0) return false;
  scalar_waits(cross_.take(whose, r.id), r, Pipe::kCount, times_.sync_all);
  return true;
}

inline bool CoreSim::scalar_awaits_pipes(const Record& r) {
  if (!idle()) return false;
  scalar_waits(complete_all(), r, Pipe::kCount, times_.all_pipes);
  return true;
}

// What the scalar unit does about a record; false when it has to wait for something that is not known yet.
inline bool CoreSim::dispatch(const Record& r) {
  const bool other_waits = r.pipe != Pipe::S;  // the wait is another pipe's
  switch (r.kind) {
    case Record::kInstr:
      return issue(r);
    case Record::kSetFlag:
      scalar_sets(r);
      return true;
    case Record::kWaitFlag:
      if (!other_waits) return scalar_awaits_flag(r);
      break;
    case Record::kDepend:
      if (!other_waits) return scalar_depends(r);
      break;
    case Record::kCrossWait:
      return scalar_awaits_cores(r);
    case Record::kBarrierAll:
      return scalar_awaits_pipes(r);
    case Record::kScalar:
      return true;
    default:  // kBarrier, kCrossSet
      break;
  }
  enqueue(r.pipe);
  return true;
}

bool CoreSim::step_scalar() {
  if (next_ == trace_.records.size() || syncing_) return false;
  const Record& r = trace_.records[next_];
  if (!counted_) {
    scalar_works(costs_.scalar(r), r.pc);
    counted_ = true;
  }
  if (r.kind == Record::kSyncAll)
    syncing_ = true;  // goes on in leave_sync()
  else if (dispatch(r))
    next_++;
  else
    return false;
  counted_ = false;
  return true;
}

}  // namespace vnpu
