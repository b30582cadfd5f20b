// Global memory as the device sees it: which bytes belong to which allocation, and their canonical device addresses.
//
// Device memory is host memory. A canonical address counts allocations in the order of their registration, so that
// nothing that is modelled (bandwidth, L2 residency, reports) depends on where the host happened to put a block.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "written_map.h"

namespace vnpu {

// Of canonical addresses, at whose multiples allocations begin: what was allocated before must not change how a tensor
// lies in the pages of L2 (l2.h), nor in those of its address (traffic.h).
constexpr uint64_t kCanonicalPage = 8192;

struct Allocation {
  ~Allocation() { delete unwritten.load(); }
  uint64_t base = 0;       // host address
  uint64_t payload = 0;    // bytes asked for
  uint64_t allocated = 0;  // bytes that may be touched; CANN rounds up to 32 B and adds 32 B (runtime manual)
  uint64_t canonical = 0;  // canonical device address of base, 512-byte aligned
  int index = 0;           // running number, for reports
  bool scratch = false;    // a workspace: nobody reads what a kernel leaves there
  bool room = false;       // of this machine's own, for what cores of a group hand each other
  mutable std::atomic<GmUnwritten*> unwritten{nullptr};  // none: every byte is written
};

// Thread-safe. `payload` bytes are the tensor, up to `allocated` may be read and written without harm on silicon.
void gm_register(void* p, size_t payload, size_t allocated);
// Constants of a loaded kernel binary (`const __gm__` arrays), which lie in GM on the device. They have addresses of
// their own, so that loading a binary moves no tensor's canonical address.
void gm_register_constants(void* p, size_t bytes);
// Where calls of a group's cores lie on their way; a program can't order its accesses, which the toolkit makes.
void gm_register_room(void* p, size_t bytes);
bool gm_is_room(uint64_t canonical);
void gm_unregister(void* p);
// The allocation that holds host address `addr`, or nullptr. The result stays valid until it is unregistered.
const Allocation* gm_find(uint64_t addr);
// The same by canonical device address; for reports.
const Allocation* gm_find_canonical(uint64_t canonical);

// The map of `a`, made when there is none.
GmUnwritten* gm_unwritten(const Allocation& a);
// Host or kernel wrote these bytes; harmless for addresses outside every allocation.
void gm_written(const void* p, size_t bytes);

}  // namespace vnpu

extern "C" {
// Declares that nobody has written the `bytes` at device address `p`, whatever they hold; `scratch`: and that nobody
// reads what a kernel leaves in the allocation. Returns 0, or 1 when they are not in one allocation.
int vnpu_unwritten(void* p, uint64_t bytes, int scratch);
}
