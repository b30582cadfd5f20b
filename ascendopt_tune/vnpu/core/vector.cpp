#include "vector.h"

#include "words.h"

namespace vnpu {

VectorCall::VectorCall(const Lanes& lanes, const char* api, const void* pc, uint32_t lanes_per_repeat)
    : core_(vnpu::core()), api_(api), pc_(pc), per_repeat_(lanes_per_repeat), lanes_(lanes) {
  if (lanes.count == 0 && lanes.repeat > 255)
    throw KernelError(KernelError::kMisuse,
                      std::string(api) + ": repeatTime " + std::to_string(lanes.repeat) + " is above 255", api, pc);
  if (lanes.count && !lanes.use_set_mask) core_.scalar(ScalarKind::Mask);
}

Range VectorCall::range_of(const Operand& o, uint32_t repeats, uint32_t last) const {
  uint64_t addr = reinterpret_cast<uint64_t>(o.ptr);
  uint32_t size = dtype_size(o.dtype);
  if (repeats == 0 || last == 0) return {addr, 0, 0, 0};
  uint32_t per_block = kBlockBytes / size, blocks = (last + per_block - 1) / per_block;
  uint32_t tail = (last - (blocks - 1) * per_block) * size;
  if (o.blk_stride <= 1)  // the blocks of a repeat follow each other (or are one block, read again)
    return {addr, (o.blk_stride ? (blocks - 1) * kBlockBytes : 0) + tail, repeats,
            uint64_t(o.rep_stride) * kBlockBytes};
  // Strided blocks: when repeats continue the same pattern it is one run of blocks, otherwise the whole span.
  if (o.rep_stride == o.blk_stride * blocks || repeats == 1)
    return {addr, kBlockBytes, blocks * repeats, uint64_t(o.blk_stride) * kBlockBytes};
  return {addr, static_cast<uint32_t>((blocks - 1) * o.blk_stride * kBlockBytes + tail), repeats,
          uint64_t(o.rep_stride) * kBlockBytes};
}

void VectorCall::access(const Range& r, bool write, const char* name, uint32_t align) {
  if (r.bytes) core_.check_local(r, align, api_, pc_, name);
  accesses_[n_accesses_++] = {r, write};
}

// Blocks that are apart in repeats that don't continue their pattern: what lies between them is another instruction's,
// so that each of them has its own pieces, a piece a repeat.
void VectorCall::cover(const Operand& o, uint32_t repeats, uint32_t last, bool write, const char* name,
                       uint32_t align) {
  const Range all = range_of(o, repeats, last);
  const uint32_t per_block = kBlockBytes / dtype_size(o.dtype), blocks = (last + per_block - 1) / per_block;
  const uint32_t left = kMostAccesses - n_accesses_, others = 10;  // whole repeats and a tail for each operand
  if (o.blk_stride <= 1 || blocks <= 1 || all.bytes <= kBlockBytes || blocks + others > left)
    return access(all, write, name, align);
  core_.check_local(all, align, api_, pc_, name);
  const uint32_t apart = o.blk_stride * kBlockBytes, tail = all.bytes - (blocks - 1) * apart;
  for (uint32_t b = 0; b < blocks; b++)
    accesses_[n_accesses_++] = {{all.addr + b * apart, b + 1 == blocks ? tail : kBlockBytes, repeats, all.stride},
                                write};
}

void VectorCall::touch(const void* p, uint64_t bytes, bool write, const char* name, uint32_t align) {
  beside_ = true;
  access({reinterpret_cast<uint64_t>(p), static_cast<uint32_t>(bytes), 1, 0}, write, name, align);
}

void VectorCall::resolve(const Operand& widest) {
  if (per_repeat_ == 0) per_repeat_ = kRepeatBytes / std::max(1u, dtype_size(widest.dtype));
  if (lanes_.count || (lanes_.use_set_mask && core_.counter_mode)) {
    count_ = lanes_.count ? lanes_.count : static_cast<uint32_t>(core_.mask[0]);
    return;
  }
  repeat_ = lanes_.repeat;
  const uint64_t* mask = lanes_.use_set_mask ? core_.mask : lanes_.mask;
  mask_[0] = mask[0];
  mask_[1] = mask[1];
  // Bits beyond a repeat are ignored: shipped operators set them, although the reference gives a range.
  if (per_repeat_ <= 64) mask_[1] = 0;
  if (per_repeat_ < 64) mask_[0] &= (1ull << per_repeat_) - 1;
}

uint32_t VectorCall::enabled_end() const {
  uint32_t last = per_repeat_;
  while (last > 0 && !enabled(last - 1)) last--;
  return last;
}

void VectorCall::operand(const Operand& o, bool write, const char* name, uint32_t align) {
  if (n_ == 0) resolve(o);
  operands_[n_++] = {o, write};
  if (!count_) return cover(o, repeat_, enabled_end(), write, name, align);
  uint32_t size = dtype_size(o.dtype), full = count_ / per_repeat_, tail = count_ % per_repeat_;
  if (linear() || (o.blk_stride == 1 && o.rep_stride * kBlockBytes == per_repeat_ * size))
    return access({reinterpret_cast<uint64_t>(o.ptr), count_ * size, 1, 0}, write, name, align);
  // Counter mode: repeats keep their strides and the last one is cut off.
  if (full) cover(o, full, per_repeat_, write, name, align);
  Operand rest = o;
  rest.ptr = static_cast<uint8_t*>(o.ptr) + uint64_t(full) * o.rep_stride * kBlockBytes;
  if (tail) access(range_of(rest, 1, tail), write, name, align);
}

BankOperand VectorCall::banks_of(const Operand& o) const {
  const uint32_t per_block = kBlockBytes / std::max(1u, dtype_size(o.dtype));
  BankOperand out;
  out.row = core_.local_offset(o.ptr) / kBlockBytes;
  out.blocks = 0;
  const uint32_t in_repeat = std::min(kBlocksPerRepeat, (per_repeat_ + per_block - 1) / per_block);
  for (uint32_t b = 0; b < in_repeat; b++) {
    uint32_t first = b * per_block, last = std::min(per_repeat_, first + per_block);
    bool touched = count_ > 0;
    for (uint32_t lane = first; lane < last && !touched; lane++) touched = enabled(lane);
    if (touched) out.blocks |= 1u << b;
  }
  out.blk_stride = linear() ? 1 : o.blk_stride;
  out.rep_stride = linear() ? in_repeat : o.rep_stride;
  return out;
}

double VectorCall::conflicts(double cycles_per_repeat) const {
  BankOperand destination, sources[4];
  uint32_t n = 0;
  bool written = false;
  for (uint32_t i = 0; i < n_; i++) {
    if (!operands_[i].write) {
      if (n < 4) sources[n++] = banks_of(operands_[i].operand);
    } else if (!written) {
      destination = banks_of(operands_[i].operand);
      written = true;
    }
  }
  return written ? bank_stalls(sources, n, destination, repeats(), cycles_per_repeat, core_.chip) : 0;
}

Range VectorCall::lanes(const Operand& o, uint32_t repeat, uint32_t lane, uint32_t n) const {
  const uint32_t size = dtype_size(o.dtype), per_block = kBlockBytes / size;
  uint64_t at = (uint64_t(repeat) * o.rep_stride + uint64_t(lane / per_block) * o.blk_stride) * kBlockBytes +
                lane % per_block * size;
  if (linear()) at = (uint64_t(repeat) * per_repeat_ + lane) * size;
  return Range{reinterpret_cast<uint64_t>(o.ptr) + at, n * size, 1, 0};
}

bool VectorCall::reads_unwritten() const {
  for (uint32_t i = 0; i < n_accesses_; i++)
    if (!accesses_[i].write && core_.unwritten.any(accesses_[i].range)) return true;
  return false;
}

bool VectorCall::has_holes() const {
  const uint32_t last = enabled_end();
  for (uint32_t l = 0; l < last; l++)
    if (!enabled(l)) return true;
  return false;
}

void VectorCall::follow_unwritten() {
  Unwritten& u = core_.unwritten;
  if (!u.on()) return;
  const AccessSite site{Pipe::V, api_, pc_, false};
  const bool as_a_whole = !reads_unwritten() && (count_ || !has_holes());
  // Bytes beside the lanes are needed for every lane.
  if (as_a_whole || beside_) return u.instruction(site, accesses_, n_accesses_);
  uint32_t widest = 1;
  for (uint32_t i = 0; i < n_; i++) widest = std::max(widest, dtype_size(operands_[i].operand.dtype));
  const uint32_t in_block = kBlockBytes / widest;
  for (uint32_t r = 0; r < repeats(); r++) {
    const uint32_t end = count_ ? std::min(per_repeat_, count_ - r * per_repeat_) : per_repeat_;
    for (uint32_t l = 0; l < end; l += in_block) follow_lanes(site, r, l, std::min(in_block, end - l));
  }
}

void VectorCall::follow_lanes(const AccessSite& site, uint32_t repeat, uint32_t lane, uint32_t n) {
  uint32_t on = 0;
  for (uint32_t l = lane; l < lane + n; l++) on += count_ || enabled(l);
  if (on == n && follow_alike(site, repeat, lane, n)) return;
  for (uint32_t l = lane; l < lane + n && on; l++)
    if (count_ || enabled(l)) follow_alike(site, repeat, l, 1);
}

bool VectorCall::follow_alike(const AccessSite& site, uint32_t repeat, uint32_t lane, uint32_t n) {
  Unwritten& u = core_.unwritten;
  uint32_t origin = 0;
  for (uint32_t i = 0; i < n_; i++) {
    if (operands_[i].write) continue;
    const Range read = lanes(operands_[i].operand, repeat, lane, n);
    const Unwritten::Part part = u.part(read);
    if (part == Unwritten::Part::Some && n > 1) return false;
    if (part != Unwritten::Part::None && !origin) origin = u.origin_of(site, read);
  }
  for (uint32_t i = 0; i < n_; i++)
    if (operands_[i].write) u.write(lanes(operands_[i].operand, repeat, lane, n), origin);
  return true;
}

namespace {

// The blocks that an operand covers, repeat by repeat.
struct BlockPattern {
  uint64_t at;
  uint64_t blk_stride, rep_stride;
  uint32_t blocks, repeats;
  uint32_t last_blocks;  // of the last repeat, which a count may end early

  uint32_t blocks_of(uint32_t repeat) const { return repeat + 1 == repeats ? last_blocks : blocks; }
  bool operator==(const BlockPattern& o) const {
    return at == o.at && blk_stride == o.blk_stride && rep_stride == o.rep_stride;
  }
  // No repeat meets the one before.
  bool moves() const { return rep_stride >= blocks * blk_stride || repeats == 1; }
  uint64_t end() const { return at + ((repeats - 1) * rep_stride + (blocks - 1) * blk_stride + 1) * kBlockBytes; }
  uint64_t block(uint32_t repeat, uint32_t b) const {
    return at + (repeat * rep_stride + b * blk_stride) * kBlockBytes;
  }
};

// Does repeat `r` of `dst` touch a block of repeat `s` of `src`? Equal ones at equal places don't count.
bool meet(const BlockPattern& dst, uint32_t r, const BlockPattern& src, uint32_t s) {
  for (uint32_t i = 0; i < dst.blocks_of(r); i++)
    for (uint32_t k = 0; k < src.blocks_of(s); k++) {
      const uint64_t a = dst.block(r, i), b = src.block(s, k);
      const bool itself = r == s && a == b && i == k;
      if (a + kBlockBytes > b && b + kBlockBytes > a && !itself) return true;
    }
  return false;
}

// Does a repeat of `dst` meet one of `src`, the same or, unless they may, a later one?
bool any_meet(const BlockPattern& dst, const BlockPattern& src, bool later_may) {
  for (uint32_t r = 0; r < dst.repeats; r++) {
    if (meet(dst, r, src, r)) return true;
    for (uint32_t later = r + 1; later < dst.repeats && !later_may; later++)
      if (meet(dst, r, src, later)) return true;
  }
  return false;
}

}  // namespace

bool VectorCall::overlaps_badly(const Operand& dst, const Operand& src, bool accumulates) const {
  const uint32_t size = dtype_size(dst.dtype), n = repeats(), per_block = kBlockBytes / size;
  const uint32_t last = count_ ? std::min(count_, per_repeat_) : enabled_end();
  const auto blocks_of = [&](uint32_t elements) { return (elements + per_block - 1) / per_block; };
  const uint32_t blocks = blocks_of(last), last_blocks = count_ ? blocks_of(count_ - (n - 1) * per_repeat_) : blocks;
  if (size != dtype_size(src.dtype) || n == 0 || blocks == 0)
    return false;  // of other sizes: each API has its own rule
  const auto pattern = [&](const Operand& o) {
    return BlockPattern{reinterpret_cast<uint64_t>(o.ptr), o.blk_stride, o.rep_stride, blocks, n, last_blocks};
  };
  const BlockPattern d = pattern(dst), s = pattern(src);
  if (d == s && (d.moves() || accumulates)) return false;
  if (d.end() <= s.at || s.end() <= d.at) return false;
  return any_meet(d, s, accumulates && d.at == s.at && (d.rep_stride == 0 || s.rep_stride == 0));
}

void VectorCall::check_overlaps() const {
  if (linear()) return;  // the rule is one of the forms with repeats
  const Operand* last = nullptr;
  for (uint32_t i = 0; i < n_; i++)
    if (!operands_[i].write) last = &operands_[i].operand;
  for (uint32_t i = 0; i < n_; i++)
    for (uint32_t k = 0; k < n_; k++)
      if (operands_[i].write && !operands_[k].write &&
          overlaps_badly(operands_[i].operand, operands_[k].operand, may_accumulate_ && &operands_[k].operand == last))
        throw KernelError(
            KernelError::kMisuse,
            std::string(api_) +
                ": a source overlaps the destination in part, or a later repeat reads what an earlier one "
                "writes " +
                kWords.overlap,
            api_, pc_);
}

void VectorCall::issue() {
  check_overlaps();
  const uint16_t row = core_.chip.instruction(api_, operands_[0].operand.dtype);
  const double conflict = core_.options.timing ? conflicts(core_.chip.instructions[row].pace) : 0;
  core_.trace.conflict_cycles += conflict;
  core_.trace.vector_repeats += repeats();
  follow_unwritten();
  core_.issue(Pipe::V, api_, pc_, Work{row, 1, static_cast<float>(repeats()), static_cast<float>(conflict)}, accesses_,
              n_accesses_);
}

void VectorCall::issue(const Work& work) {
  check_overlaps();
  follow_unwritten();
  core_.issue(Pipe::V, api_, pc_, work, accesses_, n_accesses_);
}

void unsupported_dtype(const char* api, DType t, const void* pc) {
  static const char* names[] = {"float",    "half",      "bfloat16_t", "int8_t",  "uint8_t",  "int16_t",
                                "uint16_t", "int32_t",   "uint32_t",   "int64_t", "uint64_t", "double",
                                "bool",     "complex64", "int4b_t",    "none"};
  throw KernelError(KernelError::kUnsupported,
                    std::string(api) + " does not take " + names[static_cast<int>(t)] + " on architecture 2201", api,
                    pc);
}

}  // namespace vnpu
