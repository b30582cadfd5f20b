// Where operands lie: inside of which buffer or tensor, how aligned, and what room is left for more of them.

#include <algorithm>
#include <cstring>

#include "machine.h"
#include "words.h"

namespace vnpu {
namespace {

constexpr size_t kMaxBuffers = 64;  // AscendC reference, InitBuffer

std::string bytes_text(uint64_t n) { return std::to_string(n) + " B"; }

std::string full_name(Memory memory) { return memory == Memory::UB ? "the Unified Buffer" : memory_name(memory); }

}  // namespace

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
  const auto l1 = reinterpret_cast<uint64_t>(beyond(Memory::L1, 0));
  if (kind == CoreKind::Vector && range.addr >= l1 &&
      range.addr < l1 + std::max<uint64_t>(used(Memory::L1), chip.l1_bytes))
    throw KernelError(
        KernelError::kUnsupported,
        std::string(api) + ": the " + operand + " is in L1, which is the cube core's: " + kWords.copies_to_l1, api, pc);
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
  // A vector core's L1 is its cube core's.
  const bool asks = kind == CoreKind::Vector && groups.mixed() && memory == Memory::L1;
  if (used(memory) > (asks ? chip.l1_bytes : region.bytes)) overfull_[static_cast<size_t>(memory)] = true;
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
  matmul_rooms = {};
  buffers_beyond_ = 0;
  if (!multiplication.allocated) std::memset(events_, 0, sizeof events_);
}

uint8_t* Core::matmul_results(uint32_t bytes, uint32_t buffers) {
  MatmulResults& held = matmul_results_[bytes];
  if (buffers <= held.buffers) return held.at;
  const uint32_t all = bytes * buffers;
  matmul_rooms_open(Memory::L0C, all, all);
  held = {buffers, static_cast<uint8_t*>(allocate_local(Memory::L0C, all, caller))};
  matmul_rooms_close(Memory::L0C);
  return held.at;
}

// On the device all objects lie over each other (asc-devkit, InitShareBufStart); here they do where a memory is too
// small for all of them, so that what one has brought there stays there as long as it can.
bool Core::matmul_rooms_open(Memory memory, uint64_t more, uint64_t all) {
  MatmulRooms& r = rooms_in(memory);
  const uint64_t from = used(memory), room = map[memory].bytes;
  if (!r.begun) r.begin = r.end = from;
  r.alone = r.alone && r.end == from;
  r.begun = true;
  if (!r.together && more <= local_left(memory)) return false;
  if (r.begin + all > (r.alone ? room : r.end)) return false;
  r.together = true;
  shared_[static_cast<size_t>(memory)] = {true, false, false, r.begin, from};
  share_begin(memory, false);
  return true;
}

void Core::matmul_rooms_close(Memory memory) {
  if (shared_[static_cast<size_t>(memory)].open) share_end(memory);
  if (rooms_in(memory).alone) rooms_in(memory).end = used(memory);
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

}  // namespace vnpu
