// Vector instructions that fill. Cycles per 256-byte repeat: asc-devkit, theoretical throughput table, arch 2201.
#include "vnpu/duplicate.h"

#include <algorithm>

#include "elementwise.h"
#include "local_call.h"

namespace vnpu {
namespace {

template <typename T>
void spread_blocks(const Operand& d, const Operand& s, uint32_t repeat) {
  constexpr uint32_t per_block = kBlockBytes / sizeof(T);
  const T* from = static_cast<const T*>(s.ptr);
  for (uint32_t r = 0; r < repeat; r++)
    for (uint32_t b = 0; b < kBlocksPerRepeat; b++)
      std::fill_n(VectorCall::at<T>(d, r, b * per_block), per_block, from[r * kBlocksPerRepeat + b]);
}

template <typename T>
bool holds_value(const Operand& dst, uint64_t value, uint32_t n) {
  const T* at = static_cast<const T*>(dst.ptr);
  return std::all_of(at, at + n, [v = static_cast<T>(value)](T x) { return x == v; });
}

template <typename T>
void fill(VectorCall& call, const Operand& dst, uint64_t value, bool again) {
  if (again && holds_value<T>(dst, value, call.count())) call.leaves_all_as_it_is();
  elementwise<T>(call, [v = static_cast<T>(value)]() { return v; }, dst);
}

void duplicate_lanes(const Operand& dst, uint64_t value, const Lanes& lanes, bool again, const void* pc) {
  const char* api = "Duplicate";
  // What both kinds of cores run, a constructor for one, may fill a buffer: on a cube core nothing happens (asc-devkit,
  // DuplicateImpl).
  if (core().kind == CoreKind::Cube && core().groups.mixed()) return;
  VectorCall call(lanes, api, pc);
  call.operand(dst, true, "destination");
  switch (dst.dtype) {
    case DType::F16:
    case DType::BF16:
    case DType::I16:
    case DType::U16:
      fill<uint16_t>(call, dst, value, again);
      break;
    case DType::F32:
    case DType::I32:
    case DType::U32:
      fill<uint32_t>(call, dst, value, again);
      break;
    default:
      unsupported_dtype(api, dst.dtype, pc);
  }
  call.issue();
  leave_mask(lanes);
}

}  // namespace

void duplicate(const Operand& dst, uint64_t value, const Lanes& lanes) {
  duplicate_lanes(dst, value, lanes, false, VNPU_PC);
}

void duplicate_again(const Operand& dst, uint64_t value, uint32_t count) {
  Lanes lanes;
  lanes.count = count;
  duplicate_lanes(dst, value, lanes, true, VNPU_PC);
}

void brcb(const Operand& dst, const Operand& src, uint8_t repeat) {
  const void* pc = VNPU_PC;
  const char* api = "Brcb";
  uint32_t size = dtype_size(dst.dtype);
  if (size != 2 && size != 4) unsupported_dtype(api, dst.dtype, pc);
  if (dst.blk_stride == 0) throw KernelError(KernelError::kMisuse, "Brcb: dstBlkStride 0 is not allowed", api, pc);
  LocalCall call(api, pc);
  call.core.mask[0] = call.core.mask[1] = ~0ull;  // it sets a full mask (dav_c220, BrcbImpl)
  // Eight elements a repeat, one after the other: 16 or 32 bytes. Each fills a block.
  const uint32_t blk = dst.blk_stride * kBlockBytes, rep = dst.rep_stride * kBlockBytes;
  const uint32_t elements = repeat * kBlocksPerRepeat;
  const bool even = rep == blk * kBlocksPerRepeat;
  // Of elements that nobody wrote only their own blocks are made: as many pieces on both sides say so.
  if (even && call.core.unwritten.any(src.ptr, elements * size))
    call.read(src.ptr, size, "source", kBlockBytes, elements, size);
  else
    call.read(src.ptr, elements * size, "source");
  if (even)
    call.write(dst.ptr, kBlockBytes, "destination", kBlockBytes, elements, blk);
  else if (blk == kBlockBytes)
    call.write(dst.ptr, kRepeatBytes, "destination", kBlockBytes, repeat, rep);
  else
    call.write(dst.ptr, (kBlocksPerRepeat - 1) * blk + kBlockBytes, "destination", kBlockBytes, repeat, rep);
  if (size == 2)
    spread_blocks<uint16_t>(dst, src, repeat);
  else
    spread_blocks<uint32_t>(dst, src, repeat);
  call.issue("Brcb", DType::None, repeat);  // 8 elements in, one block each out, a repeat
}

}  // namespace vnpu
