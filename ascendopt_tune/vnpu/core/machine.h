// One AI core while a kernel runs on it: local memory, registers that instructions share, and the observers.
//
// Every instruction goes through Core::issue: it names its pipe, its cost and what it touches. Values are computed by
// the caller (semantics/, copy.cpp) at once, in program order; nothing here changes a value.
#pragma once
#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "vnpu/cube.h"
#include "vnpu/cube_windows.h"
#include "vnpu/device.h"
#include "vnpu/matmul.h"

#include "access_log.h"
#include "chip.h"
#include "crossing.h"
#include "cross_flags.h"
#include "detached.h"
#include "hazard.h"
#include "local_map.h"
#include "memory.h"
#include "trace.h"
#include "unit_flags.h"
#include "unwritten.h"

namespace vnpu {

// What a kernel did wrong, as silicon would break: ends the launch. `kind` becomes the outcome.
struct KernelError : std::runtime_error {
  enum Kind { kOutOfBounds, kMisuse, kDeadlock, kUnsupported };
  KernelError(Kind kind, const std::string& what, const char* api, const void* pc)
      : std::runtime_error(what), kind(kind), api(api), pc(pc) {}
  Kind kind;
  const char* api;
  const void* pc;
};

[[noreturn]] inline void misused(const char* api, const std::string& what, const void* pc) {
  throw KernelError(KernelError::kMisuse, std::string(api) + ": " + what, api, pc);
}

struct Options {
  bool timing = true, hazards = true, auto_sync = true;
  bool log = false;
  uint8_t fill = 0xff;  // what local memory holds where nobody has written
  uint8_t stack = 0;    // the same of the kernel's stack
  bool keep = false;    // local memory holds what the core before, or a launch before, left there, instead of `fill`
};

// Registers that vector instructions leave results in; whoever reads one has to be ordered after its writer.
enum class Register : uint8_t { Accumulator, Extreme, Merged, Count };

enum class Atomic : uint8_t { None, Add, Max, Min };

// What a core needs while its kernel runs: local memory, and what the hazard checker remembers of it. Cores that run
// one after another take the same, which then stays in the processor's caches.
class LocalMemory {
 public:
  // Every byte of `bytes` becomes `fill`, or stays as it is to `keep` it. Returns the first, aligned to a repeat; one
  // more repeat may be addressed.
  uint8_t* reset(uint32_t bytes, uint8_t fill, bool keep);
  Shadows shadows;

 private:
  std::vector<uint8_t> storage_;
};

class OwnClock;

// Event ids that all multiplications of a core share, and which of them are raised: a pipe that has waited for a later
// use of one buffer has waited for an earlier one of another, too.
struct MultiplicationFlags {
  struct Flag {
    int id = -1;
    bool raised = false;
  };
  static constexpr int kInputs = 2, kResults = 2;
  Flag a_copied[kInputs], b_copied[kInputs], copied;  // forward: blocks and the bias are in L1,
  Flag loaded, computed, brought;                     // in L0, results in L0C, words in the outgoing pipe's table
  Flag a[kInputs], b[kInputs], bias, words;           // back: parts of L1 are free
  Flag inputs[kInputs], table, results[kResults];     // halves of L0A and L0B, the table of biases, buffers of L0C
  bool allocated = false;
  uint32_t input = 0;  // half of L0A and L0B that is next
};

class Core {
 public:
  // `index`: which of the launch's cores it is. `memory` is this core's until leave_memory().
  Core(const Groups& groups, int index, Crossing& crossing, const Chip& chip, const Options& options,
       LocalMemory& memory);
  ~Core();

  // ---- instructions ----
  // One instruction of `pipe` that costs `work`; `transfer` (may be null) is moved under shared bandwidth instead.
  void issue(Pipe pipe, const char* api, const void* pc, const Work& work, std::initializer_list<Access> accesses,
             const Transfer* transfer = nullptr);
  void issue(Pipe pipe, const char* api, const void* pc, const Work& work, const Access* accesses, size_t n,
             const Transfer* transfer = nullptr);
  // The hardware itself holds the next instruction of `pipe` back until that one of `src` is complete. Its time may
  // begin earlier: when the first of `pieces` that are handed over as they are made is there; 0: as a whole.
  void hold_back(Pipe pipe, Pipe src, const Changer& by, const char* api, const void* pc, uint32_t pieces = 0);
  // The same where it costs no time.
  void hold_back(Pipe pipe, Pipe src, const Changer& by);
  // The hardware itself starts what comes next on `pipe` when what it was given last is complete.
  void hold_in_order(Pipe pipe);
  // The instruction that was issued last touches this, too.
  void touches(const Access& access);
  // The access of an instruction to a register, to be given to issue() like one to memory.
  Access register_access(Register r, bool write) const;
  // The scalar unit reads a register; `decides`: the value may steer the kernel, rather than be stored as it is.
  void read_register(Register r, const char* api, const void* pc, bool decides = true);
  // Scalar work that no memory observer needs to see.
  void scalar(ScalarKind kind, double times = 1) {
    scalar_pending_.counts[static_cast<size_t>(kind)] += static_cast<float>(times);
    loading_ = false;
  }
  // What the core's system counter says: ticks of Chip::system_counter_mhz since the core began, as if it were alone; 0
  // while no times are modelled.
  int64_t system_counter(const char* api, const void* pc);
  // One GetValue/SetValue of `bytes` at `p`, local or global; past the data cache where it says so.
  void scalar_access(const void* p, uint32_t bytes, bool write, const char* api, const void* pc, bool cached = true);
  // The data cache writes the line at `p` back, or all lines, and forgets them.
  void clean_cache(const void* p, bool all);

  // `settled`: nobody has to wait for it before the kernel ends (what a queue raises when a buffer is freed, and waits
  // for when it is taken again).
  void set_flag(Pipe src, Pipe dst, int id, const void* pc, bool settled = false);
  void wait_flag(Pipe src, Pipe dst, int id, const void* pc, bool settled = false);
  void barrier(Pipe pipe);
  void barrier_all();
  // Meets all cores of its kind, or all of the launch.
  void sync_all(bool own_kind);
  // Of its kind, by counters in global memory, and what it makes of them in local memory.
  void sync_by_counters(const void* global, const void* local, uint32_t used, const void* pc);
  void cross_set(Scope scope, Pipe pipe, uint32_t id, const void* pc);  // of an id the low bits count
  void cross_wait(uint32_t id, const void* pc);
  // Of flags in global memory, see vnpu/device.h.
  void memory_wait(const void* flags, const MemoryFlags& until, const char* api, const void* pc);
  void memory_raise(const void* flag, uint32_t kind, const char* api, const void* pc);
  // Of a vector core in a group: its cube core does this, when it serves; and has answered.
  void call_cube(std::function<void()> run, const void* pc);
  // Of a call that the first vector core of a group makes for all: the others say that they have come so far, and the
  // cube core waits for them.
  void join_call(const void* pc);
  void await_joined(int from, const void* pc);
  void await_answer(size_t object, const void* pc);
  // Where in L0C a Matmul object has its results, `buffers` of `bytes`: where another one of the same cut has its own,
  // for objects share L0C and are used in turn (asc-devkit, InitShareBufStart); those of other cuts lie beside them, or
  // over them where L0C is too small for all.
  uint8_t* matmul_results(uint32_t bytes, uint32_t buffers);
  // Of a cube core in a group: does what vector cores ask for until they have ended; tells one that it is done.
  void serve();
  void answer(int to, size_t object, const void* pc);
  // Messages, which a vector core sends its cube core behind what it has stored; each of a cube core's looks for the
  // next one of vector core `sub` of the group. One that is put back is that vector core's next one again.
  void send(std::vector<uint8_t> message, const void* pc);
  bool receive(int sub, std::vector<uint8_t>& message, const void* pc);
  void put_back(int sub, std::vector<uint8_t> message);
  void done_with_message() { in_vain_ = 0; }
  // A flag of the cube core for vector core `sub`, when `pipe` is through; a vector core waits for one.
  void notify(int sub, Pipe pipe, uint32_t id, const void* pc);
  void await_notice(uint32_t id, const void* pc);
  // Room for what messages speak of is free up to `end`, says the cube core; a vector core waits until some is.
  void free_room(int sub, int32_t end, const void* pc);
  int32_t await_room(const void* pc);
  // The kernel has returned; scalar work since its last instruction counts. Throws KernelError for what it left undone
  // (flags nobody waited for).
  void finish();
  // What follows needs the cores to run in turn: a core that runs beside others stops here (throws KernelError).
  void needs_turn(const char* api, const void* pc) const;
  // The kernel has ended: local memory may be another core's from now on.
  void leave_memory() { unwritten.leave_memory(); }

  // ---- memory ----
  // Checks a local range: inside `memory`, inside one buffer, `align` bytes aligned. Throws KernelError.
  void check_local(const Range& range, uint32_t align, const char* api, const void* pc, const char* operand,
                   Memory memory = Memory::UB) const;
  // The local memory that copies from global memory arrive in.
  Memory front() const { return kind == CoreKind::Vector ? Memory::UB : Memory::L1; }
  // Throws KernelError on a core of the other kind.
  void needs(CoreKind wanted, const char* api, const void* pc) const;
  // Checks a global range; returns its canonical address. `in` (may be null) gets the allocation it lies in.
  uint64_t check_gm(const Range& range, bool write, const char* api, const void* pc, const char* operand,
                    const Allocation** in = nullptr);
  bool is_local(const void* p) const { return p >= local_ && p < local_ + map.bytes(); }
  uint8_t* local() { return local_; }
  void* local(Memory memory) const { return map[memory].bytes ? local_ + map[memory].offset : beyond(memory, 0); }
  uint32_t local_bytes() const { return map.bytes(); }  // of all local memories
  uint32_t local_offset(const void* p) const { return static_cast<uint32_t>(static_cast<const uint8_t*>(p) - local_); }

  // TPipe's bump allocation in one memory; throws KernelError when there are too many buffers.
  void* allocate_local(Memory memory, uint32_t bytes, const void* pc);
  void reset_local();
  // TPipe objects, of which mostly one is left at a time (vnpu/device.h).
  void pipe_made(void* pipe, bool new_one);
  void pipe_ended(const void* pipe, const FreedFlag* freed, size_t number);
  void pipe_destroyed(const void* pipe);
  // Several users allocate buffers in the same part of a memory, one after another. The first one's part of `bytes`
  // begins where the memory is free, or at its begin (`whole`); the others begin there again, `skip` bytes behind.
  // share_end: what is allocated next lies behind the part.
  void share_begin(Memory memory, bool whole, uint64_t bytes = 0, uint64_t skip = 0);
  void share_end(Memory memory);
  // Whether buffers of more bytes than there are were asked for since the launch began.
  bool overfull(Memory memory) const { return overfull_[static_cast<size_t>(memory)]; }
  // Where in the Unified Buffer the memory begins that allocate_local has not handed out, and how much of it kernels
  // may use.
  uint8_t* local_rest() { return local_ + used(Memory::UB); }
  uint32_t local_left(Memory memory) const {
    return static_cast<uint32_t>(map[memory].bytes - std::min<uint64_t>(map[memory].bytes, used(memory)));
  }
  uint32_t local_rest_bytes() const {
    const uint64_t usable = map[Memory::UB].bytes - std::min(map[Memory::UB].bytes, chip.ub_reserved_bytes);
    return static_cast<uint32_t>(usable > used(Memory::UB) ? usable - used(Memory::UB) : 0);
  }
  // Event ids of one pair of pipes; throws KernelError when all are taken.
  int allocate_event(Pipe src, Pipe dst, const void* pc);
  void release_event(Pipe src, Pipe dst, int id);
  // Throws KernelError when flag `id` of those in vnpu/untimed.h isn't raised: its end would wait for ever.
  void needs_matrix_flag(int id) const;

  const Groups& groups;
  const int index;
  const CoreKind kind;
  const Chip& chip;
  const Options& options;
  const LocalMap map;

  // ---- state that instructions share ----
  uint64_t mask[2] = {~0ull, ~0ull};  // vector mask, normal mode: bit i enables lane i of a repeat
  bool saturating = false;            // what overflows is to saturate: no instruction that computes may follow
  bool counter_mode = false;          // counter mode: mask[0] is a number of elements
  uint64_t compare_mask[2] = {0, 0};  // result of the register form of Compare
  uint64_t dequant = 0;               // DEQSCALE register (SetDeqScale)
  uint64_t accumulator = 0;           // bits of the last accumulating sum (GetAccVal)
  uint64_t gathered = 0;              // elements the last GatherMask kept (GetRsvdCnt)
  uint64_t extreme = 0;               // bits of the last per-repeat maximum or minimum; its index in the high half
  uint16_t merged[4] = {};            // elements the last MrgSort took from each of its lists
  uint64_t va[8][8] = {};             // address registers of the transposing instructions (set_va_reg_sb)
  // Cube cores': registers of loads from windows, of products and of the outgoing pipe, where its words lie (null: at
  // the table's begin), and unit flags.
  WindowRegisters windows;
  ShortFloats short_floats;
  std::vector<uint8_t> places;  // of elements that a sparse matrix in L0B has; empty before the first
  OutgoingRegisters outgoing;
  const void* outgoing_words = nullptr;
  UnitFlags unit_flags;
  bool rows_first = false;  // the order in which products make their tiles
  MultiplicationFlags multiplication;
  std::map<size_t, Matmul> multiplications;  // of the vector cores of the group, by the objects' numbers
  std::vector<MatmulSetup> registered;       // by this cube core's own program
  bool multiplies = false;                   // an object of the high-level Matmul has been started
  // What of L1 and of L0C this core's objects have taken, one behind the other; `together`: over each other, as it was
  // too little.
  struct MatmulRooms {
    bool begun = false, alone = true, together = false;  // alone: nobody else's buffers lie behind the latest
    uint64_t begin = 0, end = 0;
    const Matmul* turn = nullptr;  // whose it is, with `together`
    bool ended = true;             // of L1: it has said that another one's turn may come
  };
  std::array<MatmulRooms, kMemories> matmul_rooms{};
  MatmulRooms& rooms_in(Memory memory) { return matmul_rooms[static_cast<size_t>(memory)]; }
  // Around what one object takes: `more` bytes beside what it has, or all that it needs, over the others' (true).
  bool matmul_rooms_open(Memory memory, uint64_t more, uint64_t all);
  void matmul_rooms_close(Memory memory);
  struct MatmulResults {
    uint32_t buffers = 0;
    uint8_t* at = nullptr;
  };
  std::map<uint32_t, MatmulResults> matmul_results_;  // by bytes of one buffer
  std::map<const void*, size_t> matmul_numbers;       // of this vector core's objects, as they were initialized
  const void* caller = nullptr;                       // the kernel's call, while an API that is made of others runs
  Atomic atomic = Atomic::None;
  DType atomic_dtype = DType::None;
  PadRegister pad;
  MessageRoom message_room;
  void* user_pipe = nullptr;         // GetTPipePtr()
  void* system_workspace = nullptr;  // GetSysWorkSpacePtr()
  // How far past a tensor, in bytes, but inside its allocation, the core has read [0] and written [1].
  std::map<const Allocation*, std::array<uint64_t, 2>> slack;
  bool asked_clock = false;      // the kernel has read the system counter
  bool divided_by_zero = false;  // see division.h
  std::string looks_for;         // what it waits for in global memory, a sentence
  Detached* detached = nullptr;  // while it runs beside other cores

  Trace trace;

 private:
  uint8_t* local_;
  std::array<uint64_t, kMemories> used_{};  // of each memory, by allocate_local
  std::map<uint32_t, uint32_t> buffers_;    // offset -> bytes, buffers handed out by allocate_local
  size_t buffers_beyond_ = 0;               // those that lie behind what there is of their memory
  std::array<bool, kMemories> overfull_{};  // of each memory: whether more of it was handed out than there is
  struct SharedPart {
    bool begun = false, open = false, again = false;  // again: by a second user
    uint64_t begin = 0, end = 0;
  };
  std::array<SharedPart, kMemories> shared_{};

 public:
  HazardTracker hazards;
  Unwritten unwritten;
  AccessLog log;            // with Options::log
  std::vector<Held> held_;  // of the next instruction, for the log

 private:
  // All that is told of a run hears it here: hazards, whose dependencies the trace needs, then the log, then the trace.
  void tell(const Event& event);
  void time(const Event& event);
  void scalar_instruction(const char* api, const void* pc, const Access& access, ScalarKind cost);
  ScalarKind access_cost(bool local, bool write, uint64_t canonical);
  bool cached(uint64_t canonical);  // a scalar access to global memory finds its line in the data cache, or brings it
  // Addresses of what a kernel asks for and a memory doesn't have: no memory of the host is there.
  static constexpr uint64_t kBeyond = 0xf000000000000000;
  static uint8_t* beyond(Memory memory, uint64_t offset) {
    return reinterpret_cast<uint8_t*>(kBeyond + (static_cast<uint64_t>(memory) << 48) + offset);
  }
  uint64_t used(Memory m) const { return used_[static_cast<size_t>(m)]; }
  [[noreturn]] void not_inside(const Range& range, Memory memory, const char* api, const void* pc,
                               const char* operand) const;
  void record(Record r);
  void depend(Pipe pipe, Pipe src, uint32_t epoch, const char* api, const void* pc, uint32_t pieces = 0);
  void end_calls();  // of a vector core that has ended
  void raise(Scope scope, Pipe pipe, int id, const void* pc);
  void await_raised(int id, const void* pc);
  void await_message(const void* pc);
  // Of a cube core: vector core `sub` of its group.
  int vector_of(int sub) const { return groups.group(index) * groups.size() + groups.cubes + sub; }
  static Scope to_vector(int sub) { return sub == 0 ? Scope::First : Scope::Second; }
  void flush_dependencies(Pipe pipe, const char* api, const void* pc);
  void needs_all_at_once(const std::string& call, const char* api, const void* pc) const;
  void await(int id);
  void end_pipe();

  uint64_t events_[kPipes][kPipes] = {};
  std::vector<const void*> pipes_;  // TPipe objects that are left
  std::vector<FreedFlag> freed_;    // of one that has ended
  bool ended_ = false;              // and what it waits for has not been told yet
  Crossing& crossing_;
  std::vector<uint32_t> crossed_, awaited_;  // by flag: how often this core has set it (mode 0), and waited for it
  ScalarWork scalar_pending_;
  bool loading_ = false;             // a load was the last that the scalar unit did
  uint32_t in_vain_ = 0;             // looks for a message that led to nothing, since the last that was done
  std::unique_ptr<OwnClock> clock_;  // from the first time somebody asks
  const Allocation* recent_[4] = {};
  std::vector<uint64_t> dcache_;
};

// The core the calling code runs on. Only valid inside a launch.
Core& core();
Core& core_unsettled();              // for guard.cpp: with stores that have not been noticed yet
void set_unsettled(bool unsettled);  // whether there may be such: core() calls guard_settle() then
void set_current_core(Core* core);
// Ends the launch with this error from wherever kernel code stands, without unwinding it.
[[noreturn]] void abandon(const KernelError& error);
// Gives the other cores their turns until flag `id` has arrived at this one.
void give_way(int id);

}  // namespace vnpu
