// Bytes nobody wrote: which they are, and where their values go.
//
// Reading such a byte is no error by itself: kernels load, compute and store whole blocks whose last lanes nobody looks
// at. So unwritten bytes are followed through the instructions, and found when they decide something: an output that
// still holds them when the kernel ends, or a value the scalar unit loads. Instructions that work lane by lane are
// followed lane by lane; others are assumed to need every byte they read for every byte they write, piece by piece
// where they read and write as many pieces. That can claim too much, never too little; whoever has the inputs settles
// it by running once more with other values in the unwritten bytes (option fill).
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "detached.h"
#include "hazard.h"
#include "memory.h"

namespace vnpu {

// Something unwritten bytes decided. `origin`: who first read them, and which bytes (offsets in local memory, or
// canonical GM addresses); `sink`: the output they went to, or the scalar load itself.
struct UnwrittenUse {
  AccessSite origin;
  bool origin_gm = false;
  uint64_t begin = 0, end = 0;  // in findings.cpp's reports local ones count in their memory
  AccessSite sink;
  uint64_t sink_begin = 0, sink_end = 0;  // canonical; 0, 0 for a scalar load
  int core = 0;
  std::string buffer, sink_buffer;  // what the ranges lie in, for people
  Memory memory = Memory::UB;       // of a local origin
};

class Unwritten {
 public:
  Unwritten(uint8_t* local, uint32_t bytes, bool on);
  bool on() const { return on_; }
  // Local memory is another core's from now on; `uses` stay.
  void leave_memory() { std::vector<uint32_t>().swap(bits_), std::vector<uint32_t>().swap(origins_); }

  // ---- local memory ----
  bool any(const Range& local) const;
  bool any(const void* p, uint64_t bytes) const { return any({address(p), static_cast<uint32_t>(bytes), 1, 0}); }
  // How many of the bytes nobody wrote.
  enum class Part { None, Some, All };
  Part part(const Range& local) const;
  // The bytes are written, with a value that depends on unwritten bytes of `origin` (0: on none).
  void write(const Range& local, uint32_t origin = 0);
  // The bytes hold random values from now on.
  void forget(const Range& local);
  // Number of the origin of the unwritten bytes among `reads`; `site` is it when nobody has read them before.
  uint32_t origin_of(const AccessSite& site, const Range& reads);
  // An instruction on local memory that tells no more than what it reads and writes; `result`: it also leaves a result
  // in register number `result`, or -1.
  void instruction(const AccessSite& site, const Access* accesses, size_t n, int result = -1);
  // Copy inside local memory.
  void move(const AccessSite& site, const void* to, const void* from, uint64_t bytes);
  // The scalar unit loads from local memory.
  void scalar_load(const AccessSite& site, const Range& local);
  // The scalar unit loads register number `result`, or stores it to local memory.
  void register_load(const AccessSite& site, int result);
  void register_store(int result, const Range& local) { write(local, registers_[static_cast<size_t>(result)]); }

  // ---- global memory; `begin` counts from the allocation's start ----
  void load(const AccessSite& site, const void* to, const Allocation& from, uint64_t begin, uint64_t bytes);
  // `detached`: what becomes of global memory is left to it; null: it is now.
  void store(const AccessSite& site, const Allocation& to, uint64_t begin, const void* from, uint64_t bytes,
             bool atomic, Detached* detached);
  // The same of bytes that were made of others, `from`, all of them.
  void store_made(const AccessSite& site, const Allocation& to, uint64_t begin, uint64_t bytes, const Range& from,
                  bool atomic, Detached* detached);
  void scalar_load(const AccessSite& site, const Allocation& from, uint64_t begin, uint64_t bytes);

  // What happened, in program order; outputs that were written properly afterwards are still among it.
  std::vector<UnwrittenUse> uses;

 private:
  struct Origin {
    AccessSite site;
    bool gm;
    uint64_t begin, end;
  };
  static uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }
  uint64_t offset(uint64_t addr) const { return addr - address(local_); }
  bool unwritten(uint64_t at) const { return bits_[at / kBlockBytes] >> (at % kBlockBytes) & 1; }
  uint32_t new_origin(const AccessSite& site, bool gm, uint64_t begin, uint64_t end);
  // Every written piece gets the origin of the unwritten bytes that it was made of.
  void spread(const AccessSite& site, const Access* accesses, size_t n);
  void use(uint32_t origin, const AccessSite& sink, uint64_t begin, uint64_t end);
  // It adds to bytes [begin, end) of `to`; nobody may have written them.
  void adds_to(const AccessSite& site, const Allocation& to, uint64_t begin, uint64_t end);

  uint8_t* local_;
  bool on_;
  std::vector<uint32_t> bits_;     // a word a block: which of its bytes nobody wrote
  std::vector<uint32_t> origins_;  // a block: number of the origin of its unwritten bytes, 0 when nobody read them yet
  std::vector<Origin> known_;
  std::array<uint32_t, 4> registers_{};
};

// Those of `uses` that stand when the kernel has ended: the output still holds unwritten bytes, and is no scratch
// memory.
std::vector<UnwrittenUse> standing(const std::vector<UnwrittenUse>& uses);

}  // namespace vnpu
