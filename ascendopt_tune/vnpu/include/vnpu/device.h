// What the AscendC headers need of the virtual machine: the only border between kernel code and libvnpu.so.
// Every function acts on the core the caller runs on. The call site in the kernel is taken from the return address, so
// the AscendC functions above these are always inlined.
#pragma once
#include <cstddef>
#include <cstdint>

#include "types.h"

namespace vnpu {

// ---- who am I ----
uint32_t block_idx();
uint32_t block_num();
// Of a mixed kernel: which group of cores this one belongs to, which it is of its kind in there, and of how many.
uint32_t group_idx();
uint32_t sub_block_idx();
uint32_t sub_block_num();

// ---- local memory and events (TPipe) ----
// Of a memory that the core doesn't have, addresses that nobody may touch.
void* local_base(Memory memory = Memory::UB);
uint32_t local_bytes(Memory memory = Memory::UB);
void* local_allocate(Memory memory, uint32_t bytes);
void local_reset();
// A TPipe begins: where no other one is left it has all of local memory and all event ids; as a `new` object with no
// atomic operation and the whole mask.
void pipe_made(void* pipe, bool new_one);
// A flag that a queue raised when a buffer was freed, and that nobody has waited for.
struct FreedFlag {
  Pipe src, dst;
  int id;
};
// A TPipe has ended, and is gone: what the core does next, if anything, waits for these flags and for all pipes.
void pipe_ended(void* pipe, const FreedFlag* freed, size_t number);
// One has waited by itself already.
void pipe_destroyed(void* pipe);
int event_allocate(Pipe src, Pipe dst);
void event_release(Pipe src, Pipe dst, int id);
void set_flag(Pipe src, Pipe dst, int id);
// The same for the flag a queue raises when a buffer is freed: it may stay set when the kernel ends.
void set_freed_flag(Pipe src, Pipe dst, int id);
void wait_flag(Pipe src, Pipe dst, int id);
void wait_freed_flag(Pipe src, Pipe dst, int id);
void barrier(Pipe pipe);
void barrier_all();
void sync_all(bool own_kind);  // of all cores of the caller's kind, or of all cores
// Of the caller's kind, by counters of 32 bytes a core that begin as zeros; `used`: how many of the cores meet, 0: all.
void sync_by_counters(const void* global, const void* local, uint32_t used);
// CrossCoreSetFlag, with its mode, and CrossCoreWaitFlag.
void cross_set(uint32_t mode, Pipe pipe, uint32_t id);
void cross_wait(uint32_t id);
// Flags that cores keep in global memory, words 32 bytes apart, which a core on the device reads until they are what it
// waits for: the first `set` of `number` hold `value`, and the others 0. Who waits knows then what the core had done
// that has raised flag `of` of that kind, if one has since somebody waited for it. The access to the flags is the
// caller's.
struct MemoryFlags {
  uint32_t number = 1, set = 0;
  int32_t value = 0;
  uint32_t of = 0, kind = 0;
};
void memory_wait(const void* flags, const MemoryFlags& until, const char* api);
void memory_raise(const void* flag, uint32_t kind, const char* api);  // behind what MTE3 has been given
void store_barrier(bool global);  // the scalar unit waits until what it has stored, to global memory or not, is there
void queue_cost(bool ring);       // bookkeeping of one queue operation on the scalar unit; `ring`: of several tensors
void scalar_cost(double cycles);
// Ticks of the system counter since this core began, modelled.
int64_t system_counter();
void** user_pipe();
void** system_workspace();
// What the C library's printf does; %n is refused.
void print(const char* format, ...);
// Ends the launch; `what` tells what was misused and how.
[[noreturn]] void misuse(const char* api, const char* what);
[[noreturn]] void unsupported(const char* api, const char* what);

// ---- scalar access through GetValue / SetValue; call before the load or store ----
// `cached`: through the data cache.
void scalar_access(const void* p, uint32_t bytes, bool write, const char* api, bool cached = true);
// Before a reference is given: what the kernel does with it is an access when it does it.
void scalar_reference(const void* p, uint32_t bytes, const char* api);
// The data cache writes the line at `p` back, or all lines, and forgets them.
void clean_cache(const void* p, bool all);

// ---- mask state ----
void set_mask(uint64_t high, uint64_t low);
void set_mask_mode(bool counter);
// Whether what overflows saturates from now on, which nothing here computes.
void set_saturating(bool on);
void reset_mask();

// ---- data movement ----
// `bursts` pieces of `burst_bytes`; strides are bytes from one piece to the next, on either side.
struct CopyShape {
  uint32_t bursts = 1;
  uint64_t burst_bytes = 0;
  uint64_t src_stride = 0, dst_stride = 0;
  // Padding of every piece on the local side (DataCopyPad), in elements of `element_bytes`. The device writes whole
  // 32-byte blocks; `fill` is what stands in the padding and in the rest of the last block.
  enum class Fill : uint8_t { Value, FirstElement, Random };
  Fill fill = Fill::Value;
  uint32_t left_pad = 0, right_pad = 0;
  uint64_t pad_value = 0;
  uint32_t element_bytes = 1;
  bool cached = true;       // through L2 (SetL2CacheHint of the global tensor)
  bool byte_exact = false;  // DataCopyPad: pieces need no 32-byte alignment on the GM side
  DType dtype = DType::None;
};
void copy_gm_to_local(void* dst, const void* src, const CopyShape& shape, const char* api);
void copy_local_to_gm(void* dst, const void* src, const CopyShape& shape, const char* api);
void copy_local_to_local(void* dst, const void* src, const CopyShape& shape, const char* api);
// What GET_TILING_DATA does: brings `bytes` of tiling data from GM to the stack.
void load_tiling(void* dst, const void* src, uint32_t bytes);
enum class AtomicOp : uint8_t { None, Add, Max, Min };
void set_atomic(AtomicOp op, DType dtype);
void set_atomic_type(DType dtype);
void get_atomic(AtomicOp* op, DType* dtype);
// The register with the value of padding (SetPadValue); `set`: the kernel has said it since a copy had its own value.
struct PadRegister {
  bool set = false;
  uint64_t value = 0;
};
PadRegister* pad_register();

// ---- vector instructions ----
// How many lanes: `count` > 0 is the count form (lanes 0..count-1, contiguous); otherwise `repeat` repeats under a
// mask.
struct Lanes {
  uint32_t count = 0;
  uint32_t repeat = 0;
  uint64_t mask[2] = {0, 0};  // bit i of mask[0] is lane i, mask[1] holds lanes 64..127
  bool use_set_mask = false;  // the template argument isSetMask = false: the mask register as it is
};

// Immediate operands are passed as the double (floating types) or int64 (integer types) they were converted from.
struct Scalar {
  double f = 0;
  int64_t i = 0;
};

enum class BinaryOp : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Max,
  Min,
  And,
  Or,
  AddRelu,
  SubRelu,
  MulAddDst,
  FusedMulAdd,
  FusedMulAddRelu,
};
void binary(BinaryOp op, const Operand& dst, const Operand& src0, const Operand& src1, const Lanes& lanes,
            const char* api);

}  // namespace vnpu
