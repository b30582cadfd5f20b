// Gather, Gatherb, GatherMask. Cycles: asc-devkit, theoretical throughput table, arch 2201: Gather 5 elements a cycle,
// Gatherb 3 cycles and GatherMask 2 cycles per 256 bytes.
#include "vnpu/gather.h"

#include <vector>

#include "local_call.h"

namespace vnpu {
namespace {

// Declares the source bytes between the lowest and the highest gathered address.
void read_span(LocalCall& call, const void* src, uint64_t low, uint64_t high, uint32_t size, const char* what) {
  call.require(high + size <= call.core.local_bytes(), std::string(what) + " " + std::to_string(high) +
                                                           " leads out of the Unified Buffer of " +
                                                           std::to_string(call.core.local_bytes()) + " bytes");
  call.read(byte_at(src, low), high + size - low, "source", 1);
}

template <typename T>
void gather_as(LocalCall& call, const Operand& d, const void* src, const uint32_t* offsets, uint32_t base,
               const RepeatLanes& lanes, bool count_form) {
  uint32_t per_repeat = lanes.per_repeat();
  uint64_t low = ~0ull, high = 0, elements = 0;
  bool aligned = base % sizeof(T) == 0;
  uint64_t dst_stride = (count_form ? kBlocksPerRepeat : d.rep_stride) * uint64_t(kBlockBytes);
  auto each = [&](auto f) {
    for (uint32_t r = 0; r < lanes.repeats(); r++)
      for (uint32_t l = 0, n = lanes.last(r); l < n; l++)
        if (lanes.enabled(r, l)) f(r, l, uint64_t(base) + offsets[r * per_repeat + l]);
  };
  uint32_t last = lanes.last(lanes.repeats() - 1), repeats = lanes.repeats();
  call.read(offsets, ((repeats - 1) * uint64_t(per_repeat) + last) * 4, "offset tensor");
  each([&](uint32_t, uint32_t, uint64_t from) {
    low = std::min(low, from);
    high = std::max(high, from);
    aligned = aligned && from % sizeof(T) == 0;
    elements++;
  });
  call.require(aligned, "an offset (or the base address) isn't a multiple of the element's " +
                            std::to_string(sizeof(T)) + " bytes");
  read_span(call, src, low, high, sizeof(T), "byte offset");
  if (count_form)
    call.write(d.ptr, ((repeats - 1) * uint64_t(per_repeat) + last) * sizeof(T), "destination");
  else
    call.write(d.ptr, lanes.last(0) * sizeof(T), "destination", kBlockBytes, repeats, dst_stride);
  // A repeat is read before it is written: pairs of elements are swapped in place (rotary embeddings do).
  std::vector<T> repeat(per_repeat);
  for (uint32_t r = 0; r < repeats; r++) {
    const uint32_t n = lanes.last(r);
    uint8_t* out = static_cast<uint8_t*>(d.ptr) + r * dst_stride;
    for (uint32_t l = 0; l < n; l++)
      if (lanes.enabled(r, l))
        std::memcpy(&repeat[l], byte_at(src, base + uint64_t(offsets[r * per_repeat + l])), sizeof(T));
    for (uint32_t l = 0; l < n; l++)
      if (lanes.enabled(r, l)) std::memcpy(out + l * sizeof(T), &repeat[l], sizeof(T));
  }
  const float heads = count_form && repeats > 1 && last < per_repeat ? 2 : 1;
  call.issue(Work{call.core.chip.instruction("Gather", DType::None), heads, static_cast<float>(elements), 0});
}

uint32_t fixed_step(uint32_t pattern) { return pattern == 7 ? 1 : pattern <= 2 ? 2 : 4; }
uint32_t fixed_first(uint32_t pattern) { return pattern == 7 ? 0 : pattern <= 2 ? pattern - 1 : pattern - 3; }

// Declares what GatherMask reads: `per` elements of each repeat.
void read_masked(LocalCall& call, const GatherMaskCall& c, uint32_t per, uint32_t size) {
  const uint32_t per_block = kBlockBytes / size, blocks = (per + per_block - 1) / per_block;
  const uint64_t rep = uint64_t(c.src_rep_stride) * kBlockBytes, blk = uint64_t(c.src_blk_stride) * kBlockBytes;
  const uint64_t span = (blocks - 1) * blk + (per - (blocks - 1) * per_block) * size;
  if (c.src_blk_stride <= 1) {
    call.read(c.src, span, "source", kBlockBytes, c.repeat, rep);
  } else {
    constexpr uint32_t kApart = 15;  // repeats declared block by block; the others are taken as one span each
    for (uint32_t r = 0; r < std::min<uint32_t>(c.repeat, kApart); r++)
      call.read(byte_at(c.src, r * rep), kBlockBytes, "source", kBlockBytes, blocks, blk);
    if (c.repeat > kApart) call.read(byte_at(c.src, kApart * rep), span, "source", kBlockBytes, c.repeat - kApart, rep);
  }
  if (c.pattern)
    call.read(c.pattern, (per + 7) / 8, "pattern", kBlockBytes, c.repeat, uint64_t(c.pattern_rep_stride) * kBlockBytes);
}

// f(i) for each of `per` elements that repeat r keeps.
template <typename F>
void for_kept(const GatherMaskCall& c, uint32_t r, uint32_t per, F f) {
  if (c.pattern) {
    const uint8_t* bits = byte_at(c.pattern, uint64_t(r) * c.pattern_rep_stride * kBlockBytes);
    for (uint32_t i = 0; i < per; i++)
      if (bits[i / 8] >> (i % 8) & 1) f(i);
  } else {
    for (uint32_t i = fixed_first(c.fixed), step = fixed_step(c.fixed); i < per; i += step) f(i);
  }
}

template <typename T>
uint64_t mask_as(LocalCall& call, const GatherMaskCall& c) {
  constexpr uint32_t per_block = kBlockBytes / sizeof(T), per_repeat = kRepeatBytes / sizeof(T);
  const uint32_t per = c.counter ? c.count : per_repeat;
  const uint64_t rep = uint64_t(c.src_rep_stride) * kBlockBytes, blk = uint64_t(c.src_blk_stride) * kBlockBytes;
  read_masked(call, c, per, sizeof(T));
  T* out = static_cast<T*>(c.dst);
  uint64_t kept = 0;
  for (uint32_t r = 0; r < c.repeat; r++) {
    uint32_t n = 0;
    for_kept(c, r, per, [&](uint32_t) { n++; });
    const Range room{reinterpret_cast<uint64_t>(out + kept), static_cast<uint32_t>(n * sizeof(T)), 1, 0};
    if (n) call.core.check_local(room, sizeof(T), call.api, call.pc, "destination");
    // The destination may be the source: what is written lies at or before what was read.
    for_kept(c, r, per, [&](uint32_t i) {
      std::memcpy(out + kept++, byte_at(c.src, r * rep + i / per_block * blk + i % per_block * sizeof(T)), sizeof(T));
    });
  }
  call.write(c.dst, kept * sizeof(T), "destination");
  call.issue("GatherMask", DType::None, double(c.repeat) * ((per + per_repeat - 1) / per_repeat));
  return kept;
}

}  // namespace

void gather(const Operand& dst, const void* src, const uint32_t* offsets, uint32_t base, const Lanes& l) {
  LocalCall call("Gather", VNPU_PC);
  uint32_t size = dtype_size(dst.dtype);
  if ((size != 2 && size != 4) || dst.dtype == DType::None) unsupported_dtype(call.api, dst.dtype, call.pc);
  RepeatLanes lanes(call, l, kRepeatBytes / size);
  // The count form is one instruction of whole repeats, whose number is kept in 8 bits, and one for the rest.
  const uint32_t per_repeat = kRepeatBytes / size, whole = l.count / per_repeat, rest = l.count % per_repeat;
  if (l.count && l.repeat == 0) {
    call.require(whole <= 255, "count " + std::to_string(l.count) + " takes more than 255 repeats of " +
                                   std::to_string(per_repeat) + " elements");
    call.require(!call.core.counter_mode, "the count form needs normal mode");
    const uint32_t last = rest ? rest : per_repeat;
    call.core.mask[0] = last >= 64 ? ~0ull : (1ull << last) - 1;
    call.core.mask[1] = last <= 64 ? 0 : last >= 128 ? ~0ull : (1ull << (last - 64)) - 1;
  } else {
    call.core.mask[0] = l.count ? l.count : l.mask[0];
    call.core.mask[1] = l.count ? 0 : l.mask[1];
  }
  if (lanes.none()) return;
  call.core.check_local({reinterpret_cast<uint64_t>(src), 1, 1, 0}, kBlockBytes, call.api, call.pc, "source");
  if (size == 2)
    gather_as<uint16_t>(call, dst, src, offsets, base, lanes, l.count > 0);
  else
    gather_as<uint32_t>(call, dst, src, offsets, base, lanes, l.count > 0);
}

void gather_blocks(const Operand& d, const void* src, const uint32_t* offsets, uint32_t repeat) {
  LocalCall call("Gatherb", VNPU_PC);
  if (d.dtype != DType::U16 && d.dtype != DType::U32) unsupported_dtype(call.api, d.dtype, call.pc);
  if (repeat == 0) return;
  uint32_t blocks = repeat * kBlocksPerRepeat;
  uint64_t blk = std::max<uint64_t>(d.blk_stride, 1) * kBlockBytes, rep = uint64_t(d.rep_stride) * kBlockBytes;
  call.read(offsets, blocks * 4, "offset tensor");
  uint64_t low = ~0ull, high = 0;
  for (uint32_t i = 0; i < blocks; i++) {
    low = std::min<uint64_t>(low, offsets[i]);
    high = std::max<uint64_t>(high, offsets[i]);
    call.require((call.core.local_offset(src) + uint64_t(offsets[i])) % kBlockBytes == 0,
                 "source address plus offset " + std::to_string(offsets[i]) + " isn't aligned to 32 B");
  }
  read_span(call, src, low, high, kBlockBytes, "byte offset");
  if (d.blk_stride <= 1)
    call.write(d.ptr, kRepeatBytes, "destination", kBlockBytes, repeat, rep);
  else
    for (uint32_t b = 0; b < kBlocksPerRepeat; b++)
      call.write(static_cast<uint8_t*>(d.ptr) + b * blk, kBlockBytes, "destination", kBlockBytes, repeat, rep);
  for (uint32_t i = 0; i < blocks; i++)
    std::memcpy(static_cast<uint8_t*>(d.ptr) + i / kBlocksPerRepeat * rep + i % kBlocksPerRepeat * blk,
                byte_at(src, offsets[i]), kBlockBytes);
  call.core.mask[0] = call.core.mask[1] = ~0ull;  // it sets a full mask
  call.issue("Gatherb", DType::None, repeat);
}

uint64_t gather_mask(const GatherMaskCall& c) {
  LocalCall call("GatherMask", VNPU_PC);
  uint32_t size = dtype_size(c.dtype);
  if (size != 2 && size != 4) unsupported_dtype(call.api, c.dtype, call.pc);
  call.require(c.pattern || (c.fixed >= 1 && c.fixed <= 7),
               "src1Pattern " + std::to_string(c.fixed) + " is not in 1..7");
  call.require(!c.counter || c.count >= 1, "in counter mode the mask has to be at least 1");
  call.core.check_local({reinterpret_cast<uint64_t>(c.dst), 1, 1, 0}, kBlockBytes, call.api, call.pc, "destination");
  uint64_t kept = 0;
  if (c.repeat) kept = size == 2 ? mask_as<uint16_t>(call, c) : mask_as<uint32_t>(call, c);
  call.core.gathered = kept;
  call.core.counter_mode = false;  // leaves normal mode behind, and the mask register as it was given
  call.core.mask[0] = c.count;
  call.core.mask[1] = 0;
  return kept;
}

uint64_t gathered() {
  core().scalar(ScalarKind::Cycle);
  return core().gathered;
}

}  // namespace vnpu
