// Data movement: GM <-> UB on MTE2 and MTE3, UB -> UB on the vector pipe. Limits: asc-devkit, DataCopy / DataCopyPad.
#include <algorithm>
#include <cstring>

#include "guard.h"
#include "transfers.h"
#include "vector.h"
#include "words.h"

namespace vnpu {
namespace {

constexpr uint32_t kMaxBursts = 4095;  // DataCopy and DataCopyPad: blockCount in [1, 4095]

void check_shape(const CopyShape& s, const char* api, const void* pc) {
  if (s.bursts > kMaxBursts)
    throw KernelError(
        KernelError::kMisuse,
        std::string(api) + ": blockCount " + std::to_string(s.bursts) + " is above " + std::to_string(kMaxBursts), api,
        pc);
}

uint64_t left_bytes(const CopyShape& s) { return uint64_t(s.left_pad) * s.element_bytes; }
uint64_t right_bytes(const CopyShape& s) { return uint64_t(s.right_pad) * s.element_bytes; }
// A burst with its padding, in whole blocks.
uint64_t padded_bytes(const CopyShape& s) {
  return round_up(left_bytes(s) + s.burst_bytes + right_bytes(s), kBlockBytes);
}

// Fills what lies before and behind a burst with the element at `value`.
void pad(uint8_t* to, const CopyShape& s, const void* value) {
  const uint64_t left = left_bytes(s), padded = padded_bytes(s);
  for (uint64_t b = 0; b < left; b += s.element_bytes) std::memcpy(to + b, value, s.element_bytes);
  for (uint64_t b = left + s.burst_bytes; b + s.element_bytes <= padded; b += s.element_bytes)
    std::memcpy(to + b, value, s.element_bytes);
}

}  // namespace

void copy_gm_to_local(void* dst, const void* src, const CopyShape& s, const char* api) {
  const void* pc = VNPU_PC;
  if (s.bursts == 0 || s.burst_bytes == 0) return;
  Core& c = core();
  check_shape(s, api, pc);
  const uint64_t left = left_bytes(s), right = right_bytes(s), padded = padded_bytes(s);
  if (left > kBlockBytes || right > kBlockBytes)
    throw KernelError(KernelError::kMisuse, std::string(api) + ": padding of more than 32 bytes on one side", api, pc);
  Range local = pieces(dst, padded, s.bursts, s.dst_stride);
  Range gm = pieces(src, s.burst_bytes, s.bursts, s.src_stride);
  if (c.kind == CoreKind::Cube && s.byte_exact) c.needs(CoreKind::Vector, api, pc);
  c.check_local(local, kBlockBytes, api, pc, "destination", c.front());
  const Allocation* from_allocation = nullptr;
  uint64_t canonical = c.check_gm(gm, false, api, pc, "source", &from_allocation);
  bool tracked = from_allocation->unwritten.load(std::memory_order_acquire) || s.fill == CopyShape::Fill::Random;
  if (!tracked) c.unwritten.write(local);
  for (uint32_t i = 0; i < s.bursts; i++) {
    uint8_t* d = static_cast<uint8_t*>(dst) + i * s.dst_stride;
    const uint8_t* from = static_cast<const uint8_t*>(src) + i * s.src_stride;
    if (s.fill == CopyShape::Fill::Random) {
      c.unwritten.forget(pieces(d, padded, 1, 0));
      std::memset(d, c.options.fill, padded);
    } else {
      pad(d, s, s.fill == CopyShape::Fill::Value ? &s.pad_value : static_cast<const void*>(from));
      if (tracked) c.unwritten.write(pieces(d, padded, 1, 0));
    }
    std::memcpy(d + left, from, s.burst_bytes);
    if (tracked)
      c.unwritten.load({Pipe::MTE2, api, pc, true}, d + left, *from_allocation,
                       canonical - from_allocation->canonical + i * s.src_stride, s.burst_bytes);
  }
  Transfer t = transfer_of(canonical, s, s.src_stride, false, c.chip);
  c.issue(Pipe::MTE2, api, pc, Work{}, {{local, true, false, false, 0}, {gm, false, true, false, canonical}}, &t);
}

void copy_local_to_gm(void* dst, const void* src, const CopyShape& s, const char* api) {
  const void* pc = VNPU_PC;
  if (s.bursts == 0 || s.burst_bytes == 0) return;
  Core& c = core();
  check_shape(s, api, pc);
  Range local = pieces(src, s.burst_bytes, s.bursts, s.src_stride);
  Range gm = pieces(dst, s.burst_bytes, s.bursts, s.dst_stride);
  c.check_local(local, kBlockBytes, api, pc, "source", c.front());
  const Allocation* to = nullptr;
  uint64_t canonical = c.check_gm(gm, true, api, pc, "destination", &to);
  bool atomic = c.atomic != Atomic::None;
  if (c.unwritten.any(local) || to->unwritten.load(std::memory_order_acquire))
    for (uint32_t i = 0; i < s.bursts; i++)
      c.unwritten.store({Pipe::MTE3, api, pc, true}, *to, canonical - to->canonical + i * s.dst_stride,
                        static_cast<const uint8_t*>(src) + i * s.src_stride, s.burst_bytes, atomic, c.detached);
  for (uint32_t i = 0; i < s.bursts; i++)
    store(c, static_cast<uint8_t*>(dst) + i * s.dst_stride, static_cast<const uint8_t*>(src) + i * s.src_stride,
          s.burst_bytes, api, pc);
  Transfer t = transfer_of(canonical, s, s.dst_stride, true, c.chip);
  c.issue(Pipe::MTE3, api, pc, Work{}, {{local, false, false, false, 0}, {gm, true, true, atomic, canonical}}, &t);
}

// On the device: one copy to UB, MTE2 -> S flag, scalar copies to the stack, barrier (get_op_tiling of the operator
// compiler). Only its time matters here: a load that misses the data cache, and words of 8 bytes; that all cores
// load from the same address is part of the launch (launch.tiling_us).
void load_tiling(void* dst, const void* src, uint32_t bytes) {
  const void* pc = VNPU_PC;
  Core& c = core();
  c.check_gm(pieces(src, bytes, 1, 0), false, kWords.load_tiling, pc, "tiling data");
  guard_own(dst, bytes, pc);
  std::memcpy(dst, src, bytes);
  c.trace.tiling = true;
  c.scalar(ScalarKind::GmMiss);
  c.scalar(ScalarKind::TilingWord, (bytes + 7) / 8);
}

void copy_local_to_local(void* dst, const void* src, const CopyShape& s, const char* api) {
  const void* pc = VNPU_PC;
  if (s.bursts == 0 || s.burst_bytes == 0) return;
  Core& c = core();
  check_shape(s, api, pc);
  Range from = pieces(src, s.burst_bytes, s.bursts, s.src_stride),
        to = pieces(dst, s.burst_bytes, s.bursts, s.dst_stride);
  c.check_local(to, kBlockBytes, api, pc, "destination");
  c.check_local(from, kBlockBytes, api, pc, "source");
  AccessSite site{Pipe::V, api, pc, false};
  if (!c.unwritten.any(from))
    c.unwritten.write(to);
  else
    for (uint32_t i = 0; i < s.bursts; i++)
      c.unwritten.move(site, static_cast<uint8_t*>(dst) + i * s.dst_stride,
                       static_cast<const uint8_t*>(src) + i * s.src_stride, s.burst_bytes);
  for (uint32_t i = 0; i < s.bursts; i++)
    std::memmove(static_cast<uint8_t*>(dst) + i * s.dst_stride, static_cast<const uint8_t*>(src) + i * s.src_stride,
                 s.burst_bytes);
  double repeats = static_cast<double>(s.bursts) * round_up(s.burst_bytes, kRepeatBytes) / kRepeatBytes;
  c.issue(Pipe::V, api, pc, Work{c.chip.instruction(api, DType::None), 1, static_cast<float>(repeats), 0},
          {{to, true}, {from, false}});
}

}  // namespace vnpu
