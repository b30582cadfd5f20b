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
      hazards(index, kind, chip, map, local_, kRegisterBytes, {options.hazards, options.auto_sync, groups.mixed()},
              &buffers_, memory.shadows),
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
  if (saturating && (pipe == Pipe::V || pipe == Pipe::M || pipe == Pipe::FIX))
    throw KernelError(KernelError::kMisuse,
                      std::string(api) + ": the mode that saturates what overflows is not covered by the virtual NPU",
                      api, pc);
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
  if (ended_) end_pipe();
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
    r.epoch = static_cast<uint32_t>(e.scope) | e.box << 8;
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

// What is loaded straight behind a load is asked for before that one is there: the trace shows only that nothing was
// stored, issued or waited for in between, not the kernel's own arithmetic.
ScalarKind Core::access_cost(bool local, bool write, uint64_t canonical) {
  const bool there = local || cached(canonical);
  if (write) return there ? ScalarKind::Store : ScalarKind::GmMiss;
  if (!there) return loading_ ? ScalarKind::GmMissAgain : ScalarKind::GmMiss;
  if (!loading_) return ScalarKind::Load;
  return local ? ScalarKind::LocalAgain : ScalarKind::GmAgain;
}

bool Core::cached(uint64_t canonical) {
  if (!options.timing) return true;
  if (dcache_.empty()) dcache_.assign(chip.dcache_bytes / chip.dcache_line_bytes, ~0ull);
  const uint64_t line = canonical / chip.dcache_line_bytes;
  // Lines of a set stand in the order of their last use; the last one leaves.
  const auto set =
      dcache_.begin() + static_cast<ptrdiff_t>(line % (dcache_.size() / chip.dcache_ways)) * chip.dcache_ways;
  const auto place = std::find(set, set + chip.dcache_ways - 1, line);
  const bool hit = *place == line;
  std::rotate(set, place, place + 1);
  *set = line;
  return hit;
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
  scalar_instruction(api, pc, access, access_cost(local, write, canonical));
  loading_ = !write;
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
  ended_ = false;  // the kernel's own end waits for all
  if (groups.mixed() && kind == CoreKind::Vector) end_calls();
  hazards.write_all_back();
  trace.scalar_tail = trace.scalars.number(scalar_pending_);
  const uint64_t taken = user_pipe ? events_[static_cast<int>(Pipe::M)][static_cast<int>(Pipe::MTE1)] : 0;
  const bool matrix_flags = kind == CoreKind::Cube && (taken & kMatrixFlags) == kMatrixFlags;  // awaited at the end
  for (int id = 0; matrix_flags && kMatrixFlags >> id != 0; id++) {                            // one of each
    needs_matrix_flag(id);
    Event wait{Event::kWaitFlag, Pipe::MTE1, Pipe::M, id, kWords.wait_flag};
    wait.settled = true;
    hazards.on(wait);
  }
  for (const HazardTracker::OpenFlag& f : hazards.open_flags())
    throw KernelError(KernelError::kMisuse,
                      std::string(kWords.set_flag) + "<" + pipe_name(f.src) + "_" + pipe_name(f.dst) + "> on event " +
                          std::to_string(f.id) + " has no " + kWords.wait_flag + ": " + kWords.flags_in_pairs,
                      kWords.set_flag, f.pc);
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

}  // namespace vnpu
