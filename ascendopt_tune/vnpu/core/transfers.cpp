#include "transfers.h"

#include <cstring>

#include "../semantics/float16.h"
#include "vector.h"

namespace vnpu {
namespace {

// What an access to [begin, end) occupies of one window, the unit in which GM addresses are handled (asc-devkit,
// same-address access): its bytes where it lies on cuts, and the whole window where it doesn't (architecture 2201,
// constraints: "cut into 128, 256 or 512 bytes, unaligned rounds up").
uint64_t occupied(uint64_t begin, uint64_t end, uint64_t window, uint64_t cut) {
  return begin % cut == 0 && end % cut == 0 ? end - begin : window;
}

template <typename T, typename C>
void apply_atomic(Atomic op, void* dst, const void* src, uint64_t bytes) {
  T* d = static_cast<T*>(dst);
  const T* s = static_cast<const T*>(src);
  for (uint64_t i = 0; i < bytes / sizeof(T); i++) {
    C a = static_cast<C>(d[i]), b = static_cast<C>(s[i]);
    d[i] = static_cast<C>(op == Atomic::Add ? a + b : op == Atomic::Max ? (a > b ? a : b) : (a < b ? a : b));
  }
}

// The pieces that a core asks for one by one, and those that wait for the one before. Pieces of one stretch of GM that
// a copy sets apart in UB are read line by line if they are shorter than a line: shorter than a block (counters of
// Concat's L2 requests), or set apart by its gap (concat_tasks, whole rows). Not so those that are filled up with a
// value (padded_rows).
void cut_into_pieces(Transfer& t, const CopyShape& s, const Chip& chip) {
  const uint64_t line = chip.l2_line_bytes;
  const bool apart = s.burst_bytes < kBlockBytes ||
                     (s.burst_bytes < line && s.burst_bytes % kBlockBytes == 0 && s.dst_stride > s.burst_bytes);
  t.pieces = s.bursts;
  if (!t.write && t.burst_stride == s.burst_bytes && apart) {
    if (s.fill == CopyShape::Fill::Value && s.burst_bytes < kBlockBytes)
      t.padded = s.bursts;
    else
      t.pieces = static_cast<uint32_t>((s.bursts * s.burst_bytes + line - 1) / line);
  } else if (t.burst_stride < line || s.burst_bytes >= t.burst_stride) {
    for (uint32_t b = 1; b < s.bursts; b++) {
      const uint64_t begin = t.gm_addr + b * t.burst_stride, before = begin - t.burst_stride + s.burst_bytes - 1;
      t.same_line += begin / line == before / line;
      t.same_block += begin == before + 1 && begin % kBlockBytes != 0;
    }
  }
}

// The windows that are asked for behind L2. Pieces of one stretch of GM are one there; matrices (without a stride in
// local memory) are asked for row by row.
void cut_into_windows(Transfer& t, const CopyShape& s, const Chip& chip) {
  const auto window = static_cast<uint64_t>(chip.gm_request_bytes);
  const uint64_t cut = chip.gm_cut_bytes, local_stride = t.write ? s.src_stride : s.dst_stride;
  const bool alike = t.burst_stride % window == 0;  // every piece lies in its windows as the first does
  const bool joined = t.burst_stride == s.burst_bytes && local_stride != 0;
  const uint64_t length = joined ? s.bursts * s.burst_bytes : s.burst_bytes;
  const uint64_t times = alike && !joined ? s.bursts : 1;
  uint64_t requests = 0, bytes = 0;
  for (uint32_t b = 0; b < (alike || joined ? 1 : s.bursts); b++) {
    const uint64_t begin = t.gm_addr + b * t.burst_stride, end = begin + length;
    const uint64_t first = begin / window, last = (end - 1) / window;
    requests += last - first + 1;
    if (first == last) {
      bytes += occupied(begin, end, window, cut);
    } else {
      bytes += occupied(begin, (first + 1) * window, window, cut) + occupied(last * window, end, window, cut) +
               (last - first - 1) * window;
    }
  }
  t.requests = static_cast<uint32_t>(requests * times);
  t.gm_bytes = static_cast<uint32_t>(bytes * times);
}

}  // namespace

Transfer transfer_of(uint64_t canonical, const CopyShape& s, uint64_t stride, bool write, const Chip& chip) {
  Transfer t;
  t.gm_addr = canonical;
  t.bursts = s.bursts;
  t.burst_bytes = static_cast<uint32_t>(s.burst_bytes);
  t.burst_stride = stride;
  t.bytes = round_up(s.burst_bytes, kBlockBytes) * s.bursts;
  t.write = write;
  t.cached = s.cached;
  cut_into_pieces(t, s, chip);
  cut_into_windows(t, s, chip);
  return t;
}

void store(Core& c, void* dst, const void* src, uint64_t bytes, const char* api, const void* pc) {
  if (c.atomic == Atomic::None) {
    c.detached ? c.detached->keep(dst, src, bytes) : static_cast<void>(std::memcpy(dst, src, bytes));
    return;
  }
  c.needs_turn(api, pc);
  switch (c.atomic_dtype) {
    case DType::F32:
      return apply_atomic<float, float>(c.atomic, dst, src, bytes);
    case DType::F16:
      return apply_atomic<f16, float>(c.atomic, dst, src, bytes);
    case DType::BF16:
      return apply_atomic<bf16, float>(c.atomic, dst, src, bytes);
    case DType::I32:
      return apply_atomic<int32_t, int32_t>(c.atomic, dst, src, bytes);
    case DType::I16:
      return apply_atomic<int16_t, int16_t>(c.atomic, dst, src, bytes);
    case DType::I8:
      return apply_atomic<int8_t, int8_t>(c.atomic, dst, src, bytes);
    default:
      unsupported_dtype(api, c.atomic_dtype, pc);
  }
}

}  // namespace vnpu
