#include "machine.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "guard.h"
#include "own_clock.h"
#include "words.h"

namespace vnpu {
namespace {

// Of this thread; together, because every call of the machine looks for both.
struct Running {
  Core* core;
  bool unsettled;  // stores may not have been noticed yet
};
thread_local Running running{};

// Registers are tracked as memory behind all local memories, a block each; nothing is stored there.
constexpr uint32_t kRegisterBytes = static_cast<uint32_t>(Register::Count) * kBlockBytes;
static_assert(kRegisterBytes <= kRepeatBytes, "the storage has one repeat to spare");

constexpr uint64_t kMatrixFlags = 7;  // ids of those in vnpu/untimed.h, a bit each

constexpr size_t kMaxBuffers = 64;  // AscendC reference, InitBuffer

std::string bytes_text(uint64_t n) { return std::to_string(n) + " B"; }

std::string full_name(Memory memory) { return memory == Memory::UB ? "the Unified Buffer" : memory_name(memory); }

}  // namespace

const char* pipe_name(Pipe pipe) {
  static const char* names[] = {"S", "V", "MTE1", "MTE2", "MTE3", "M", "FIX"};
  return names[static_cast<int>(pipe)];
}

const char* memory_name(Memory memory) {
  static const char* names[] = {"UB", "L1", "L0A", "L0B", "L0C", "BT", "FB", ""};
  return names[static_cast<int>(memory)];
}

Core& core() {
  const Running& now = running;
  if (now.unsettled) guard_settle();
  return *now.core;
}
Core& core_unsettled() { return *running.core; }
void set_current_core(Core* c) { running.core = c; }
void set_unsettled(bool unsettled) { running.unsettled = unsettled; }

uint8_t* LocalMemory::reset(uint32_t bytes, uint8_t fill, bool keep) {
  keep = keep && storage_.size() == bytes + 2 * kRepeatBytes;
  storage_.resize(bytes + 2 * kRepeatBytes);
  uint64_t raw = reinterpret_cast<uint64_t>(storage_.data());
  uint8_t* first = storage_.data() + (kRepeatBytes - raw % kRepeatBytes);
  if (!keep) std::memset(first, fill, bytes);
  return first;
}

// By default all bits of local memory are set, NaN in every float type and -1 in every signed one: reading what nobody
// wrote shows.
Core::Core(const Groups& groups, int index, Crossing& crossing, const Chip& chip, const Options& options,
           LocalMemory& memory)
    : groups(groups),
      index(index),
      kind(groups.kind(index)),
      chip(chip),
      options(options),
      map(chip, kind),
      local_(memory.reset(map.bytes(), options.fill, options.keep)),
      hazards(index, kind, chip, map, local_, kRegisterBytes,
              {options.hazards, options.auto_sync, options.hazards && groups.mixed()}, &buffers_, memory.shadows),
      unwritten(local_, map.bytes(), options.hazards),
      crossing_(crossing),
      crossed_(chip.cross_flags),
      awaited_(chip.cross_flags) {}

void Core::record(Record r) {
  r.scalar = trace.scalars.number(scalar_pending_);
  scalar_pending_ = {};
  trace.records.push_back(r);
}

void Core::hold_back(Pipe pipe, Pipe src, const Changer& by, const char* api, const void* pc, uint32_t pieces) {
  if (by.epoch == 0) return;
  hold_back(pipe, src, by);
  if (options.timing) depend(pipe, src, by.epoch, api, pc, pieces);
}

void Core::hold_back(Pipe pipe, Pipe src, const Changer& by) {
  hazards.held_back(pipe, by.knew);
  if (options.log && by.epoch != 0) held_.push_back({src, by.epoch});
}

void Core::hold_in_order(Pipe pipe) {
  hazards.held_back(pipe);
  if (options.log) log.back().in_order = true;
}

void Core::depend(Pipe pipe, Pipe src, uint32_t epoch, const char* api, const void* pc, uint32_t pieces) {
  Record r;
  r.kind = Record::kDepend;
  r.pipe = pipe;
  r.src = src;
  r.epoch = epoch;
  r.pieces = pieces;
  r.api = api;
  r.pc = pc;
  record(r);
}

void Core::flush_dependencies(Pipe pipe, const char* api, const void* pc) {
  for (const Dependency& d : hazards.dependencies()) {
    // Copies of one pipe that overlap are not held up: asc-devkit's data_copy scenario 1, built with automatic
    // synchronization, copies to the same place of UB every 20.6 cycles.
    if (d.src == pipe && pipe != Pipe::V) continue;
    depend(pipe, d.src, d.epoch, api, pc);
  }
}

void Core::issue(Pipe pipe, const char* api, const void* pc, const Work& work, std::initializer_list<Access> accesses,
                 const Transfer* transfer) {
  issue(pipe, api, pc, work, accesses.begin(), accesses.size(), transfer);
}

void Core::issue(Pipe pipe, const char* api, const void* pc, const Work& work, const Access* accesses, size_t n,
                 const Transfer* transfer) {
  if (detached && !detached->step()) needs_turn(api, pc);
  if (transfer) (transfer->write ? trace.mte3_bytes : trace.mte2_bytes) += transfer->bytes;
  Event e;
  e.pipe = pipe;
  e.api = api;
  e.pc = pc;
  e.cost = ScalarKind::Issue;
  e.accesses = accesses;
  e.n = n;
  e.work = &work;
  e.transfer = transfer;
  tell(e);
}

void Core::tell(const Event& e) {
  hazards.on(e);
  if (options.log) log.push_back({e, {e.accesses, e.accesses + e.n}, std::exchange(held_, {})});
  if (options.timing) time(e);
}

void Core::touches(const Access& access) {
  hazards.access(&access, 1);
  if (options.log) log.back().accesses.push_back(access);
}

void Core::time(const Event& e) {
  static constexpr Record::Kind kinds[] = {Record::kInstr,    Record::kSetFlag,    Record::kWaitFlag,
                                           Record::kBarrier,  Record::kBarrierAll, Record::kSyncAll,
                                           Record::kCrossSet, Record::kCrossWait};
  const bool instruction = e.kind == Event::kInstruction;
  if (instruction) flush_dependencies(e.pipe, e.api, e.pc);
  if (e.cost != ScalarKind::kCount) scalar(e.cost);
  if (instruction && !e.work) return;  // of the scalar unit, which is done with it
  Record r;
  r.kind = kinds[e.kind];
  r.pipe = e.pipe;
  r.src = e.src;
  r.id = static_cast<uint8_t>(e.id);
  r.api = e.api;
  r.pc = e.pc;
  if (instruction) {
    r.epoch = hazards.epoch();
    r.work = trace.works.number(*e.work);
  } else {
    r.epoch = static_cast<uint32_t>(e.scope);
  }
  if (e.transfer) {
    r.transfer = static_cast<int32_t>(trace.transfers.size());
    trace.transfers.push_back(*e.transfer);
  }
  record(r);
}

void Core::scalar_instruction(const char* api, const void* pc, const Access& access, ScalarKind cost) {
  Event e;
  e.api = api;
  e.pc = pc;
  e.cost = cost;
  e.accesses = &access;
  e.n = 1;
  tell(e);
}

ScalarKind Core::cached(uint64_t canonical) {
  if (!options.timing) return ScalarKind::GmHit;
  if (dcache_.empty()) dcache_.assign(chip.dcache_bytes / chip.dcache_line_bytes, ~0ull);
  const uint64_t line = canonical / chip.dcache_line_bytes;
  // Lines of a set stand in the order of their last use; the last one leaves.
  const auto set =
      dcache_.begin() + static_cast<ptrdiff_t>(line % (dcache_.size() / chip.dcache_ways)) * chip.dcache_ways;
  const auto place = std::find(set, set + chip.dcache_ways - 1, line);
  const bool hit = *place == line;
  std::rotate(set, place, place + 1);
  *set = line;
  return hit ? ScalarKind::GmHit : ScalarKind::GmMiss;
}

void Core::scalar_access(const void* p, uint32_t bytes, bool write, const char* api, const void* pc, bool through) {
  Range range{reinterpret_cast<uint64_t>(p), bytes, 1, 0};
  const bool behind = reinterpret_cast<uint64_t>(p) >= kBeyond;
  const bool local = behind || (p >= local_ && p < local_ + std::max<uint64_t>(map.bytes(), used(Memory::UB)));
  uint64_t canonical = 0;
  const Allocation* in = nullptr;
  if (local)
    check_local(range, 1, api, pc, write ? "destination" : "source", Memory::UB);
  else
    canonical = check_gm(range, write, api, pc, write ? "destination" : "source", &in);
  if (!local && write) needs_turn(api, pc);  // the kernel's own code stores
  AccessSite site{Pipe::S, api, pc, false};
  if (local) {
    write ? unwritten.write(range) : unwritten.scalar_load(site, range);
  } else {
    uint64_t begin = range.addr - in->base;
    write ? gm_written(p, bytes) : unwritten.scalar_load(site, *in, begin, bytes);
  }
  const Access access{range, write, !local, false, canonical, through && !local};
  scalar_instruction(api, pc, access, local ? ScalarKind::LocalAccess : cached(canonical));
}

void Core::clean_cache(const void* p, bool all) {
  if (all) return hazards.write_all_back();
  if (const Allocation* a = gm_find(reinterpret_cast<uint64_t>(p)))
    hazards.write_back(a->canonical + (reinterpret_cast<uint64_t>(p) - a->base));
}

Access Core::register_access(Register r, bool write) const {
  uint64_t at = map.bytes() + static_cast<uint64_t>(r) * kBlockBytes;
  return {{reinterpret_cast<uint64_t>(local_) + at, kBlockBytes, 1, 0}, write, false, false, 0};
}

void Core::read_register(Register r, const char* api, const void* pc, bool decides) {
  Access access = register_access(r, false);
  if (decides) unwritten.register_load({Pipe::S, api, pc, false}, static_cast<int>(r));
  scalar_instruction(api, pc, access, ScalarKind::Issue);
}

Core::~Core() = default;

int64_t Core::system_counter(const char* api, const void* pc) {
  asked_clock = true;
  if (!options.timing) return 0;
  scalar(ScalarKind::Cycle);
  Record r;
  r.kind = Record::kScalar;
  r.api = api;
  r.pc = pc;
  record(r);
  if (!clock_) clock_ = std::make_unique<OwnClock>(trace, chip);
  return static_cast<int64_t>(clock_->now() * chip.system_counter_mhz / chip.clock_mhz);
}

void Core::needs_turn(const char* api, const void* pc) const {
  if (!detached) return;
  detached->refuse();
  throw KernelError(KernelError::kUnsupported, std::string(api) + ": the order of the cores may matter", api, pc);
}

void Core::finish() {
  if (groups.mixed() && kind == CoreKind::Vector) end_calls();
  hazards.write_all_back();
  trace.scalar_tail = trace.scalars.number(scalar_pending_);
  const uint64_t taken = user_pipe ? events_[static_cast<int>(Pipe::M)][static_cast<int>(Pipe::MTE1)] : 0;
  const bool matrix_flags = kind == CoreKind::Cube && (taken & kMatrixFlags) == kMatrixFlags;  // awaited at the end
  for (int id = 0; matrix_flags && kMatrixFlags >> id != 0; id++) needs_matrix_flag(id);
  for (const HazardTracker::OpenFlag& f : hazards.open_flags())
    if (!matrix_flags || f.src != Pipe::M || f.dst != Pipe::MTE1 || (kMatrixFlags >> f.id & 1) == 0)
      throw KernelError(KernelError::kMisuse,
                        std::string(kWords.set_flag) + "<" + pipe_name(f.src) + "_" + pipe_name(f.dst) + "> on event " +
                            std::to_string(f.id) + " has no " + kWords.wait_flag + ": " + kWords.flags_in_pairs,
                        kWords.set_flag, f.pc);
}

void Core::set_flag(Pipe src, Pipe dst, int id, const void* pc, bool settled) {
  tell({Event::kSetFlag, dst, src, id, kWords.set_flag, pc, ScalarKind::Flag, settled});
}

void Core::wait_flag(Pipe src, Pipe dst, int id, const void* pc, bool settled) {
  if (std::uncaught_exceptions() > 0) return;  // the launch has failed; destructors of the kernel's objects wait
  if (!hazards.is_set(src, dst, id))
    throw KernelError(KernelError::kDeadlock,
                      std::string(kWords.wait_flag) + "<" + pipe_name(src) + "_" + pipe_name(dst) + "> on event " +
                          std::to_string(id) + " has no " + kWords.set_flag +
                          " before it: the core would wait for ever",
                      kWords.wait_flag, pc);
  tell({Event::kWaitFlag, dst, src, id, kWords.wait_flag, pc, ScalarKind::Flag, settled});
}

void Core::barrier(Pipe pipe) { tell({Event::kBarrier, pipe, Pipe::S, 0, kWords.barrier, nullptr, ScalarKind::Flag}); }

void Core::barrier_all() {
  for (const HazardTracker::OpenFlag& f : hazards.open_flags(true))
    throw KernelError(KernelError::kDeadlock,
                      std::string(kWords.barrier_all) + " while " + kWords.set_flag + "<" + pipe_name(f.src) + "_" +
                          pipe_name(f.dst) + "> on event " + std::to_string(f.id) + " was called twice with no " +
                          kWords.wait_flag + " in between: " + kWords.set_twice,
                      kWords.barrier, f.pc);
  tell({Event::kBarrierAll, Pipe::S, Pipe::S, 0, kWords.barrier_all, nullptr, ScalarKind::Flag});
}

void Core::needs_all_at_once(const std::string& call, const char* api, const void* pc) const {
  const int most = groups.at_once(chip);
  if (groups.blocks <= most) return;
  throw KernelError(KernelError::kDeadlock,
                    call + " with " + std::to_string(groups.blocks) + " blocks on " + std::to_string(most) +
                        (groups.mixed() ? " groups of" : "") +
                        " cores: it needs all of them running at once and would wait for ever",
                    api, pc);
}

// Meetings are flags behind those that kernels set.
void Core::sync_all(bool own_kind) {
  if (!own_kind && !groups.mixed())
    throw KernelError(KernelError::kDeadlock, std::string(kWords.meet) + ": " + kWords.meet_other_kind, kWords.meet,
                      nullptr);
  const Scope scope = own_kind ? Scope::Kind : Scope::All;
  const int id = static_cast<int>(chip.cross_flags) + (scope == Scope::All);
  needs_turn(kWords.meet, nullptr);
  needs_all_at_once(kWords.meet, kWords.meet, nullptr);
  Event e{Event::kMeet, Pipe::S, Pipe::S, 0, kWords.meet};
  e.scope = scope;
  tell(e);
  std::fill(dcache_.begin(), dcache_.end(), ~0ull);
  crossing_.raise(index, scope, id, hazards.told());
  await(id);
}

// asc-devkit, SyncAll: room for all cores on both sides, and zeros to begin with, which nobody else may still have to
// write. The device counts in them; here they stay.
void Core::sync_by_counters(const void* global, const void* local, uint32_t used, const void* pc) {
  const auto cores = static_cast<uint32_t>(groups.blocks);
  if (used != 0 && used != cores)
    throw KernelError(
        used > cores ? KernelError::kMisuse : KernelError::kUnsupported,
        std::string(kWords.meet) + " of " + std::to_string(used) + " of " + std::to_string(cores) + " cores",
        kWords.meet, pc);
  const auto range_at = [&](const void* p) { return Range{reinterpret_cast<uint64_t>(p), cores * kBlockBytes, 1, 0}; };
  check_local(range_at(local), kBlockBytes, kWords.meet, pc, "workspace");
  check_gm(range_at(global), true, kWords.meet, pc, "workspace");
  const auto* words = static_cast<const int32_t*>(global);
  for (uint32_t i = 0; i < cores; i++)
    if (words[i * kBlockBytes / sizeof(int32_t)] != 0)
      throw KernelError(KernelError::kDeadlock, std::string(kWords.meet) + ": " + kWords.counters, kWords.meet, pc);
  sync_all(true);
}

void Core::await(int id) {
  give_way(id);
  hazards.learn(crossing_.take(index, id));
}

void Core::cross_set(Scope scope, Pipe pipe, uint32_t id, const void* pc) {
  id %= chip.cross_flags;
  const std::string call = std::string(kWords.cross_set) + "(" + std::to_string(id) + ")";
  needs_turn(kWords.cross_set, pc);
  if (scope != Scope::Kind && (!groups.mixed() || (scope == Scope::Vectors && kind == CoreKind::Cube)))
    throw KernelError(KernelError::kMisuse, call + ": " + kWords.group_flags, kWords.cross_set, pc);
  if (scope == Scope::Kind && groups.mixed()) needs_all_at_once(call, kWords.cross_set, pc);
  Event e{Event::kCrossSet, pipe, Pipe::S, static_cast<int>(id), kWords.cross_set, pc, ScalarKind::Flag};
  e.scope = scope;
  const bool alone = scope == Scope::Kind && groups.blocks > groups.at_once(chip);  // nobody can wait for it
  const auto overflows = [&](size_t pending) {
    if (pending > chip.cross_flag_most)
      throw KernelError(KernelError::kMisuse,
                        call + " more than " + std::to_string(chip.cross_flag_most) + " times without " +
                            kWords.cross_wait + ": the flag's counter overflows",
                        kWords.cross_set, pc);
  };
  if (scope == Scope::Kind) overflows(++crossed_[id] - awaited_[id]);
  tell(e);
  if (!alone) overflows(crossing_.raise(index, scope, static_cast<int>(id), hazards.told()));
}

void Core::cross_wait(uint32_t id, const void* pc) {
  id %= chip.cross_flags;
  const std::string call = std::string(kWords.cross_wait) + "(" + std::to_string(id) + ")";
  if (!groups.mixed()) {
    if (awaited_[id] == crossed_[id])
      throw KernelError(
          KernelError::kDeadlock,
          call + " has no " + kWords.cross_set + " before it on its own core: the core would wait for ever",
          kWords.cross_wait, pc);
    needs_all_at_once(call, kWords.cross_wait, pc);
  }
  tell({Event::kCrossWait, Pipe::S, Pipe::S, static_cast<int>(id), kWords.cross_wait, pc});
  awaited_[id]++;
  await(static_cast<int>(id));
}

void Core::needs(CoreKind wanted, const char* api, const void* pc) const {
  if (kind == wanted) return;
  const char* const names[] = {"vector", "cube"};
  const char *name = names[wanted == CoreKind::Cube], *own = names[kind == CoreKind::Cube];
  throw KernelError(
      KernelError::kUnsupported,
      std::string(api) + " needs a " + name + " core, and " +
          (groups.mixed() ? "this is " + groups.name(index) + "; " + kWords.tell_cores
                          : std::string("this kernel runs on ") + own + " cores alone; " + kWords.choose_cores),
      api, pc);
}

void Core::not_inside(const Range& range, Memory memory, const char* api, const void* pc, const char* operand) const {
  const std::string name = full_name(memory);
  const auto all = reinterpret_cast<uint64_t>(local_) + map.bytes();
  const bool behind = range.addr >= all && memory == Memory::UB && range.addr < all - map.bytes() + used(memory);
  if (map[memory].bytes != 0 && (behind || (range.addr >= reinterpret_cast<uint64_t>(beyond(memory, 0)) &&
                                            range.addr < reinterpret_cast<uint64_t>(beyond(memory, used(memory))))))
    throw KernelError(KernelError::kOutOfBounds,
                      std::string(api) + ": the " + operand + " is past the end of " + name + " (" +
                          memory_name(memory) + " overflow): " + kWords.allocate_buffer + " was asked for " +
                          bytes_text(used(memory)) + " in all, there are " + bytes_text(map[memory].bytes) +
                          "; use smaller or fewer buffers",
                      api, pc);
  needs(memory == Memory::UB ? CoreKind::Vector : CoreKind::Cube, api, pc);
  throw KernelError(KernelError::kOutOfBounds, std::string(api) + ": the " + operand + " is not in " + name, api, pc);
}

void Core::check_local(const Range& range, uint32_t align, const char* api, const void* pc, const char* operand,
                       Memory memory) const {
  const Region& region = map[memory];
  const uint64_t offset = range.addr - reinterpret_cast<uint64_t>(local_ + region.offset);
  if (offset >= region.bytes) not_inside(range, memory, api, pc, operand);
  if (offset % align != 0)
    throw KernelError(KernelError::kMisuse,
                      std::string(api) + ": the " + operand + " starts at " + memory_name(memory) + " byte " +
                          std::to_string(offset) + ", which is not aligned to " + bytes_text(align),
                      api, pc);
  const uint64_t end = offset + range.span();
  uint64_t limit = region.bytes;
  bool of_buffer = false;
  if (!buffers_.empty()) {
    auto it = buffers_.upper_bound(static_cast<uint32_t>(region.offset + offset));
    if (it != buffers_.begin()) {
      --it;
      const uint64_t buffer_end = uint64_t(it->first) + it->second;
      if (region.offset + offset < buffer_end && buffer_end <= region.offset + region.bytes) {
        limit = buffer_end - region.offset;
        of_buffer = true;
      }
    }
  }
  if (end > limit)
    throw KernelError(KernelError::kOutOfBounds,
                      std::string(api) + ": the " + operand + " covers " + memory_name(memory) + " bytes [" +
                          std::to_string(offset) + ", " + std::to_string(end) + "), past " +
                          (of_buffer ? "the end of its buffer" : "the end of " + full_name(memory)) + " at " +
                          std::to_string(limit),
                      api, pc);
}

uint64_t Core::check_gm(const Range& range, bool write, const char* api, const void* pc, const char* operand,
                        const Allocation** in) {
  if (detached && !detached->access(range, write)) needs_turn(api, pc);
  const Allocation* a = nullptr;
  for (const Allocation* r : recent_)
    if (r && range.addr >= r->base && range.addr < r->base + r->allocated) a = r;
  if (!a) {
    a = gm_find(range.addr);
    if (!a)
      throw KernelError(KernelError::kOutOfBounds,
                        std::string(api) + ": the " + operand + " is in no allocation of global memory", api, pc);
    std::rotate(std::begin(recent_), std::end(recent_) - 1, std::end(recent_));
    recent_[0] = a;
  }
  uint64_t begin = range.addr - a->base, end = begin + range.span();
  if (end > a->allocated)
    throw KernelError(KernelError::kOutOfBounds,
                      std::string(api) + ": the " + operand + " covers bytes [" + std::to_string(begin) + ", " +
                          std::to_string(end) + ") of a tensor of " + bytes_text(a->payload) + " (allocation " +
                          bytes_text(a->allocated) + ")",
                      api, pc);
  if (end > a->payload) {
    uint64_t& past = slack[a][write ? 1 : 0];
    past = std::max(past, end - a->payload);
  }
  if (in) *in = a;
  return a->canonical + begin;
}

void* Core::allocate_local(Memory memory, uint32_t bytes, const void* pc) {
  // As on the device, asking for more than there is does no harm by itself: touching it does (check_local). It is a
  // habit all the same, for builds with assertions stop there.
  bytes = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  if (buffers_.size() + buffers_beyond_ >= kMaxBuffers)
    throw KernelError(KernelError::kMisuse,
                      std::string(kWords.allocate_buffer) + ": a kernel has at most " + std::to_string(kMaxBuffers) +
                          " buffers in all " + kWords.most_buffers,
                      kWords.allocate_buffer, pc);
  scalar(ScalarKind::Buffer);
  const uint64_t offset = used(memory);
  used_[static_cast<size_t>(memory)] += bytes;
  const Region& region = map[memory];
  if (used(memory) > region.bytes) overfull_[static_cast<size_t>(memory)] = true;
  if (offset >= region.bytes) {
    buffers_beyond_ += bytes != 0;
    return beyond(memory, offset);
  }
  const SharedPart& part = shared_[static_cast<size_t>(memory)];
  const bool one = part.open && part.again;
  uint32_t& extent = buffers_[static_cast<uint32_t>(region.offset + (one ? part.begin : offset))];
  extent = one ? std::max(extent, static_cast<uint32_t>(offset + bytes - part.begin)) : bytes;
  return local_ + region.offset + offset;
}

void Core::reset_local() {
  used_ = {};
  shared_ = {};
  buffers_.clear();
  matmul_results_.clear();
  buffers_beyond_ = 0;
  if (!multiplication.allocated) std::memset(events_, 0, sizeof events_);
}

uint8_t* Core::matmul_results(uint32_t bytes, uint32_t buffers) {
  MatmulResults& held = matmul_results_[bytes];
  if (buffers > held.buffers)
    held = {buffers, static_cast<uint8_t*>(allocate_local(Memory::L0C, bytes * buffers, caller))};
  return held.at;
}

// Buffers of different users cut the part differently: from the second one on it is one buffer.
void Core::share_begin(Memory memory, bool whole, uint64_t bytes, uint64_t skip) {
  SharedPart& part = shared_[static_cast<size_t>(memory)];
  uint64_t& used = used_[static_cast<size_t>(memory)];
  if (!part.begun) {
    part.begin = whole ? 0 : used;
    part.end = part.begin + bytes;
  }
  part.begun = part.open = true;
  part.again = used > part.begin;
  part.end = std::max(part.end, used);
  used = part.begin + skip;
  const auto begin = static_cast<uint32_t>(map[memory].offset + part.begin);
  const auto limit = static_cast<uint32_t>(map[memory].offset + part.end);
  uint32_t extent = 0;
  for (auto at = buffers_.lower_bound(begin); at != buffers_.end() && at->first < limit; at = buffers_.erase(at))
    extent = at->first + at->second - begin;
  if (extent != 0) buffers_[begin] = extent;
}

void Core::share_end(Memory memory) {
  SharedPart& part = shared_[static_cast<size_t>(memory)];
  uint64_t& used = used_[static_cast<size_t>(memory)];
  part.end = used = std::max(part.end, used);
  part.open = false;
}

int Core::allocate_event(Pipe src, Pipe dst, const void* pc) {
  uint64_t& used = events_[static_cast<int>(src)][static_cast<int>(dst)];
  for (uint32_t id = 0; id < chip.event_ids; id++)
    if (!(used >> id & 1)) {
      used |= 1ull << id;
      return static_cast<int>(id);
    }
  throw KernelError(KernelError::kMisuse,
                    std::string("all ") + std::to_string(chip.event_ids) + " event ids from " + pipe_name(src) +
                        " to " + pipe_name(dst) + " are taken; release one or use fewer queues and buffers",
                    kWords.allocate_event, pc);
}

void Core::needs_matrix_flag(int id) const {
  if (hazards.is_set(Pipe::M, Pipe::MTE1, id)) return;
  throw KernelError(KernelError::kDeadlock,
                    "flag " + std::to_string(id) +
                        " from M to MTE1 was raised when the kernel began and is waited for at its end, and nobody has "
                        "raised it again",
                    kWords.wait_flag, nullptr);
}

void Core::release_event(Pipe src, Pipe dst, int id) {
  events_[static_cast<int>(src)][static_cast<int>(dst)] &= ~(1ull << id);
}

}  // namespace vnpu
