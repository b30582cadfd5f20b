#include "vector.h"

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
  // Strided blocks: when repeats continue the same pattern it is one run of blocks, otherwise the whole span is taken.
  if (o.rep_stride == o.blk_stride * blocks || repeats == 1)
    return {addr, kBlockBytes, blocks * repeats, uint64_t(o.blk_stride) * kBlockBytes};
  return {addr, static_cast<uint32_t>((blocks - 1) * o.blk_stride * kBlockBytes + tail), repeats,
          uint64_t(o.rep_stride) * kBlockBytes};
}

void VectorCall::access(const Range& r, bool write, const char* name, uint32_t align) {
  if (r.bytes) core_.check_local(r, align, api_, pc_, name);
  accesses_[n_accesses_++] = {r, write};
}

void VectorCall::touch(const void* p, uint64_t bytes, bool write, const char* name, uint32_t align) {
  access({reinterpret_cast<uint64_t>(p), static_cast<uint32_t>(bytes), 1, 0}, write, name, align);
}

void VectorCall::operand(const Operand& o, bool write, const char* name, uint32_t align) {
  if (n_ == 0) {
    if (per_repeat_ == 0) per_repeat_ = kRepeatBytes / std::max(1u, dtype_size(o.dtype));
    if (lanes_.count) {
      count_ = lanes_.count;
    } else if (lanes_.use_set_mask && core_.counter_mode) {
      count_ = static_cast<uint32_t>(core_.mask[0]);
    } else {
      repeat_ = lanes_.repeat;
      mask_[0] = lanes_.use_set_mask ? core_.mask[0] : lanes_.mask[0];
      mask_[1] = lanes_.use_set_mask ? core_.mask[1] : lanes_.mask[1];
      // Bits beyond a repeat are ignored: shipped operators set them, although the reference gives a range.
      if (per_repeat_ <= 64) mask_[1] = 0;
      if (per_repeat_ < 64) mask_[0] &= (1ull << per_repeat_) - 1;
    }
  }
  operands_[n_++] = {o, write};
  if (!count_) {
    uint32_t last = per_repeat_;  // highest enabled lane + 1
    while (last > 0 && !enabled(last - 1)) last--;
    return access(range_of(o, repeat_, last), write, name, align);
  }
  uint32_t size = dtype_size(o.dtype), full = count_ / per_repeat_, tail = count_ % per_repeat_;
  bool count_form = lanes_.count && lanes_.repeat == 0;
  if (count_form || (o.blk_stride == 1 && o.rep_stride * kBlockBytes == per_repeat_ * size))
    return access({reinterpret_cast<uint64_t>(o.ptr), count_ * size, 1, 0}, write, name, align);
  // Counter mode: repeats keep their strides and the last one is cut off.
  if (full) access(range_of(o, full, per_repeat_), write, name, align);
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
  bool count_form = lanes_.count && lanes_.repeat == 0;
  out.blk_stride = count_form ? 1 : o.blk_stride;
  out.rep_stride = count_form ? in_repeat : o.rep_stride;
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

void VectorCall::follow_unwritten() {
  Unwritten& u = core_.unwritten;
  if (!u.on()) return;
  AccessSite site{Pipe::V, api_, pc_, false};
  bool dirty = false;
  for (uint32_t i = 0; i < n_accesses_; i++) dirty = dirty || (!accesses_[i].write && u.any(accesses_[i].range));
  uint32_t last = per_repeat_;
  while (last > 0 && !enabled(last - 1)) last--;
  bool holes = false;
  for (uint32_t l = 0; l < last; l++) holes = holes || !enabled(l);
  // Bytes beside the lanes are needed for every lane.
  if ((!dirty && (count_ || !holes)) || n_ != n_accesses_) return u.instruction(site, accesses_, n_accesses_);
  auto lane = [&](const Operand& o, uint32_t r, uint32_t l) {
    uint32_t size = dtype_size(o.dtype), per_block = kBlockBytes / size;
    uint64_t at =
        (uint64_t(r) * o.rep_stride + uint64_t(l / per_block) * o.blk_stride) * kBlockBytes + l % per_block * size;
    bool linear = lanes_.count && lanes_.repeat == 0;
    if (linear) at = (uint64_t(r) * per_repeat_ + l) * size;
    return Range{reinterpret_cast<uint64_t>(o.ptr) + at, size, 1, 0};
  };
  auto follow = [&](uint32_t r, uint32_t l) {
    uint32_t origin = 0;
    for (uint32_t i = 0; i < n_; i++)
      if (!operands_[i].write && !origin) origin = u.origin_of(site, lane(operands_[i].operand, r, l));
    for (uint32_t i = 0; i < n_; i++)
      if (operands_[i].write) u.write(lane(operands_[i].operand, r, l), origin);
  };
  if (!count_) return masked(follow);
  for (uint32_t i = 0; i < count_; i++) follow(i / per_repeat_, i % per_repeat_);
}

bool VectorCall::overlaps_badly(const Operand& dst, const Operand& src, bool accumulates) const {
  uint32_t size = dtype_size(dst.dtype), n = repeats(), per_block = kBlockBytes / size;
  uint32_t last = count_ ? std::min(count_, per_repeat_) : per_repeat_;
  while (!count_ && last > 0 && !enabled(last - 1)) last--;
  uint32_t blocks = (last + per_block - 1) / per_block;
  if (size != dtype_size(src.dtype) || n == 0 || blocks == 0)
    return false;  // of other sizes: each API has its own rule
  bool same_pattern = dst.blk_stride == src.blk_stride && dst.rep_stride == src.rep_stride;
  bool moves = dst.rep_stride >= blocks * dst.blk_stride || n == 1;  // no repeat meets the one before
  if (dst.ptr == src.ptr && same_pattern && (moves || accumulates)) return false;
  auto span = [&](const Operand& o) {
    return ((n - 1) * uint64_t(o.rep_stride) + (blocks - 1) * uint64_t(o.blk_stride) + 1) * kBlockBytes;
  };
  uint64_t d = reinterpret_cast<uint64_t>(dst.ptr), s = reinterpret_cast<uint64_t>(src.ptr);
  if (d + span(dst) <= s || s + span(src) <= d) return false;
  auto block = [&](uint64_t at, const Operand& o, uint32_t r, uint32_t b) {
    return at + (r * uint64_t(o.rep_stride) + b * uint64_t(o.blk_stride)) * kBlockBytes;
  };
  auto meet = [&](uint32_t written,
                  uint32_t read) {  // any block of the two repeats; equal ones at equal places are not
    for (uint32_t i = 0; i < blocks; i++)
      for (uint32_t k = 0; k < blocks; k++) {
        uint64_t a = block(d, dst, written, i), b = block(s, src, read, k);
        if (a + kBlockBytes > b && b + kBlockBytes > a && !(written == read && a == b && i == k)) return true;
      }
    return false;
  };
  bool exception = accumulates && dst.ptr == src.ptr && (dst.rep_stride == 0 || src.rep_stride == 0);
  for (uint32_t r = 0; r < n; r++) {
    if (meet(r, r)) return true;
    for (uint32_t later = r + 1; later < n && !exception; later++)
      if (meet(r, later)) return true;
  }
  return false;
}

void VectorCall::check_overlaps() const {
  if (lanes_.count && lanes_.repeat == 0) return;  // the rule is one of the forms with repeats
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
                "writes (AscendC reference, general notes: overlapping addresses)",
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

void VectorCall::issue_composite(double heads, double cycles) {
  check_overlaps();
  follow_unwritten();
  core_.issue(Pipe::V, api_, pc_, Work{0, static_cast<float>(heads), static_cast<float>(cycles), 0}, accesses_,
              n_accesses_);
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
