// Copy (UB to UB under a mask). One repeat a cycle is assumed: the theoretical throughput table leaves it out for 2201.
#include "vnpu/vcopy.h"

#include "elementwise.h"
#include "local_call.h"

namespace vnpu {
namespace {

// Counter mode: `n` elements of every repeat, which may be more than 256 bytes.
void copy_counted(const Operand& dst, const Operand& src, uint32_t n, uint32_t repeats, uint32_t size, const void* pc) {
  LocalCall call("Copy", pc);
  const uint32_t per_block = kBlockBytes / size, blocks = (n + per_block - 1) / per_block;
  if (blocks == 0) return;
  auto span = [&](const Operand& o) {
    return (blocks - 1) * o.blk_stride * kBlockBytes + (n - (blocks - 1) * per_block) * size;
  };
  call.read(src.ptr, span(src), "source", kBlockBytes, repeats, src.rep_stride * kBlockBytes);
  call.write(dst.ptr, span(dst), "destination", kBlockBytes, repeats, dst.rep_stride * kBlockBytes);
  for (uint32_t r = 0; r < repeats; r++)
    for (uint32_t b = 0; b < blocks; b++) {
      auto at = [&](const Operand& o) {
        return static_cast<uint8_t*>(o.ptr) + (uint64_t(r) * o.rep_stride + uint64_t(b) * o.blk_stride) * kBlockBytes;
      };
      std::memmove(at(dst), at(src), std::min(per_block, n - b * per_block) * size);
    }
  call.issue("Copy", DType::None, double(repeats) * ((blocks + kBlocksPerRepeat - 1) / kBlocksPerRepeat));
}

}  // namespace

// In counter mode the mask counts the elements of one repeat, and repeatTime stays valid (AscendC reference, Copy).
void vector_copy(const Operand& dst, const Operand& src, const Lanes& lanes) {
  const void* pc = VNPU_PC;
  const uint32_t size = dtype_size(dst.dtype);
  if (size != 2 && size != 4) unsupported_dtype("Copy", dst.dtype, pc);
  if (dst.rep_stride > 4095 || src.rep_stride > 4095)
    throw KernelError(KernelError::kMisuse, "Copy: dstRepeatSize and srcRepeatSize must be in [0, 4095]", "Copy", pc);
  if (core().counter_mode) {
    auto n = lanes.use_set_mask ? static_cast<uint32_t>(core().mask[0]) : lanes.count;
    copy_counted(dst, src, n, lanes.repeat, size, pc);
    return leave_mask(lanes);
  }
  VectorCall call(lanes, "Copy", pc);
  call.operand(dst, true, "destination");
  call.operand(src, false, "source");
  if (size == 2)
    elementwise<uint16_t, uint16_t>(call, [](uint16_t x) { return x; }, dst, src);
  else
    elementwise<uint32_t, uint32_t>(call, [](uint32_t x) { return x; }, dst, src);
  call.issue();
  leave_mask(lanes);
}

}  // namespace vnpu
