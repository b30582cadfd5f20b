// The plain part of include/vnpu/device.h: identity, local memory, events, masks, scalar accesses.
#include "vnpu/device.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "guard.h"
#include "vector.h"
#include "words.h"

namespace vnpu {

uint32_t block_idx() { return static_cast<uint32_t>(core().groups.block(core().index)); }
uint32_t block_num() { return static_cast<uint32_t>(core().groups.blocks); }
uint32_t group_idx() { return static_cast<uint32_t>(core().groups.group(core().index)); }
uint32_t sub_block_idx() { return static_cast<uint32_t>(core().groups.sub(core().index)); }
uint32_t sub_block_num() { return static_cast<uint32_t>(core().groups.ratio(core().index)); }

void* local_base(Memory memory) { return core().local(memory); }
uint32_t local_bytes(Memory memory) { return core().map[memory].bytes; }
void* local_allocate(Memory memory, uint32_t bytes) { return core().allocate_local(memory, bytes, VNPU_PC); }
void local_reset() { core().reset_local(); }
void pipe_made(void* pipe, bool new_one) { core().pipe_made(pipe, new_one); }
void pipe_ended(void* pipe, const FreedFlag* freed, size_t number) { core().pipe_ended(pipe, freed, number); }
void pipe_destroyed(void* pipe) { core().pipe_destroyed(pipe); }
int event_allocate(Pipe src, Pipe dst) { return core().allocate_event(src, dst, VNPU_PC); }
void event_release(Pipe src, Pipe dst, int id) { core().release_event(src, dst, id); }

namespace {
// The core, which has event `id`.
Core& core_with(int id, const char* api, const void* pc) {
  Core& c = core();
  if (id < 0 || id >= static_cast<int>(c.chip.event_ids))
    throw KernelError(KernelError::kMisuse,
                      std::string(api) + ": event id " + std::to_string(id) + " is outside 0.." +
                          std::to_string(c.chip.event_ids - 1),
                      api, pc);
  return c;
}
}  // namespace

void set_flag(Pipe src, Pipe dst, int id) { core_with(id, kWords.set_flag, VNPU_PC).set_flag(src, dst, id, VNPU_PC); }
void set_freed_flag(Pipe src, Pipe dst, int id) {
  core_with(id, kWords.free_buffer, VNPU_PC).set_flag(src, dst, id, VNPU_PC, true);
}
void wait_flag(Pipe src, Pipe dst, int id) {
  core_with(id, kWords.wait_flag, VNPU_PC).wait_flag(src, dst, id, VNPU_PC);
}
void wait_freed_flag(Pipe src, Pipe dst, int id) {
  core_with(id, kWords.allocate_buffer, VNPU_PC).wait_flag(src, dst, id, VNPU_PC, true);
}
void barrier(Pipe pipe) { core().barrier(pipe); }
void barrier_all() { core().barrier_all(); }
void sync_all(bool own_kind) { core().sync_all(own_kind); }
void sync_by_counters(const void* global, const void* local, uint32_t used) {
  core().sync_by_counters(global, local, used, VNPU_PC);
}
void cross_set(uint32_t mode, Pipe pipe, uint32_t id) {
  static constexpr Scope scopes[] = {Scope::Kind, Scope::Vectors, Scope::Group};
  if (mode > 2) misuse(kWords.cross_set, "modes are 0, 1 and 2");
  core().cross_set(scopes[mode], pipe, id, VNPU_PC);
}
void cross_wait(uint32_t id) { core().cross_wait(id, VNPU_PC); }
void memory_wait(const void* flags, const MemoryFlags& until, const char* api) {
  core().memory_wait(flags, until, api, VNPU_PC);
}
void memory_raise(const void* flag, uint32_t kind, const char* api) { core().memory_raise(flag, kind, api, VNPU_PC); }
void store_barrier(bool global) { core().scalar(global ? ScalarKind::GmMiss : ScalarKind::Load); }
void queue_cost(bool ring) { core().scalar(ring ? ScalarKind::QueueRing : ScalarKind::QueueSingle); }
void scalar_cost(double cycles) {
  if (!(cycles >= 0)) misuse("scalar_cost", "a cost can't be negative");
  core().scalar(ScalarKind::Cycle, cycles);
}
int64_t system_counter() { return core().system_counter(kWords.clock, VNPU_PC); }
void** user_pipe() { return &core().user_pipe; }
void** system_workspace() { return &core().system_workspace; }

void print(const char* format, ...) {
  core().needs_turn(kWords.print, VNPU_PC);
  for (const char* p = strchr(format, '%'); p != nullptr; p = strchr(p, '%')) {
    p += 1 + strspn(p + 1, "#0- +'.*$123456789hljztLqZI");
    if (*p == 'n') misuse(kWords.print, "%n would write to memory");
    if (*p != '\0') p++;
  }
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
}

void misuse(const char* api, const char* what) {
  throw KernelError(KernelError::kMisuse, std::string(api) + ": " + what, api, VNPU_PC);
}
void unsupported(const char* api, const char* what) {
  throw KernelError(KernelError::kUnsupported, std::string(api) + ": " + what, api, VNPU_PC);
}

void scalar_access(const void* p, uint32_t bytes, bool write, const char* api, bool cached) {
  core().scalar_access(p, bytes, write, api, VNPU_PC, cached);
  guard_announce(p);
}
void scalar_reference(const void* p, uint32_t bytes, const char* api) {
  if (!guard_refer(p, api)) core().scalar_access(p, bytes, true, api, VNPU_PC);
}
void clean_cache(const void* p, bool all) { core().clean_cache(p, all); }

void set_mask(uint64_t high, uint64_t low) {
  core().mask[0] = low;
  core().mask[1] = high;
  core().scalar(ScalarKind::Cycle);
}
void set_mask_mode(bool counter) {
  core().counter_mode = counter;
  core().scalar(ScalarKind::Cycle);
}
void set_saturating(bool on) { core().saturating = on; }
void reset_mask() {
  core().mask[0] = core().mask[1] = ~0ull;
  core().scalar(ScalarKind::Cycle);
}

void set_atomic_type(DType dtype) {
  core().atomic_dtype = dtype;
  core().scalar(ScalarKind::Cycle);
}
void get_atomic(AtomicOp* op, DType* dtype) {
  *op = static_cast<AtomicOp>(core().atomic);
  *dtype = core().atomic_dtype;
  core().scalar(ScalarKind::Cycle);
}
PadRegister* pad_register() { return &core().pad; }
void set_atomic(AtomicOp op, DType dtype) {
  core().atomic = static_cast<Atomic>(op);
  core().atomic_dtype = dtype;
  core().scalar(ScalarKind::Cycle);
}

}  // namespace vnpu
