// TransDataTo5HD and Transpose. Cycles: asc-devkit, theoretical throughput table, arch 2201: 256 (8-bit), 128 (16-bit)
// or 64 (32-bit) elements a cycle.
#include "vnpu/transpose.h"

#include <set>

#include "composite.h"
#include "local_call.h"

namespace vnpu {
namespace {

constexpr uint32_t kRows = 16;

double elements_per_cycle(uint32_t size) { return size == 1 ? 256 : size == 2 ? 128 : 64; }

// One repeat: `src[j]` and `dst[i]` are the addresses of its 16 blocks.
template <typename T>
void transpose_block(const RowTranspose& t, uint8_t* const dst[kRows], const uint8_t* const src[kRows]) {
  constexpr uint32_t per_row =
      sizeof(T) == 1 ? 16 : kBlockBytes / sizeof(T);  // elements that are transposed of a block
  T in[kRows][per_row];
  for (uint32_t j = 0; j < kRows; j++)
    std::memcpy(in[j], src[j] + (sizeof(T) == 1 && t.src_high ? 16 : 0), sizeof(in[j]));
  if constexpr (sizeof(T) == 4) {  // a row of 16 results fills two blocks
    for (uint32_t i = 0; i < kRows; i++)
      for (uint32_t j = 0; j < per_row; j++) std::memcpy(dst[i] + j * 4, &in[i % 2 * per_row + j][i / 2], 4);
  } else {
    uint32_t half = sizeof(T) == 1 && t.dst_high ? 16 : 0;
    for (uint32_t i = 0; i < kRows; i++)
      for (uint32_t j = 0; j < kRows; j++) std::memcpy(dst[i] + half + j * sizeof(T), &in[j][i], sizeof(T));
  }
}

void check_dtype(const LocalCall& call, DType t) {
  uint32_t size = dtype_size(t);
  if (t == DType::BF16 || (size != 1 && size != 2 && size != 4) || t == DType::Bool)
    unsupported_dtype(call.api, t, call.pc);
}

// How many of the 16 rows lie in one bank group: they are read one after another. Published transposes (Transpose of
// fidelity/silicon.csv) take 4 cycles a repeat with rows that are spread over 8 groups, 17 to 21 with all in one.
uint32_t most_in_one_group(const LocalCall& call, const RowTranspose& t) {
  constexpr uint32_t kGroups = 16;
  uint32_t most = 0;
  for (const uint64_t* rows : {t.src, t.dst}) {
    uint32_t in_group[kGroups] = {};
    std::set<uint64_t> seen;  // a row that is read already serves twice
    for (uint32_t i = 0; i < kRows; i++)
      if (seen.insert(rows[i]).second)
        most = std::max(
            most, ++in_group[call.core.local_offset(reinterpret_cast<const void*>(rows[i])) / kBlockBytes % kGroups]);
  }
  return most;
}

void turn_rows(LocalCall& call, const RowTranspose& t) {
  check_dtype(call, t.dtype);
  if (t.repeat == 0) return;
  uint32_t size = dtype_size(t.dtype), moved = size == 1 ? 16 : kBlockBytes;
  uint64_t dst_rep = uint64_t(t.dst_rep_stride) * kBlockBytes, src_rep = uint64_t(t.src_rep_stride) * kBlockBytes;
  uint8_t* dst[kRows];
  const uint8_t* src[kRows];
  for (uint32_t i = 0; i < kRows; i++) {
    dst[i] = reinterpret_cast<uint8_t*>(t.dst[i]) + (t.repeat == 1 ? dst_rep : 0);
    src[i] = reinterpret_cast<const uint8_t*>(t.src[i]) + (t.repeat == 1 ? src_rep : 0);
    call.core.check_local({reinterpret_cast<uint64_t>(dst[i]), 1, 1, 0}, kBlockBytes, call.api, call.pc, "destination");
    call.core.check_local({reinterpret_cast<uint64_t>(src[i]), 1, 1, 0}, kBlockBytes, call.api, call.pc, "source");
    call.read(src[i] + (t.src_high && size == 1 ? 16 : 0), moved, "source", 1, t.repeat, src_rep);
    call.write(dst[i] + (t.dst_high && size == 1 ? 16 : 0), moved, "destination", 1, t.repeat, dst_rep);
  }
  for (uint32_t r = 0; r < t.repeat; r++) {
    if (size == 1)
      transpose_block<uint8_t>(t, dst, src);
    else if (size == 2)
      transpose_block<uint16_t>(t, dst, src);
    else
      transpose_block<uint32_t>(t, dst, src);
    for (uint32_t i = 0; i < kRows; i++) dst[i] += dst_rep, src[i] += src_rep;
  }
  call.issue("TransDataTo5HD", DType::None, t.repeat * (2.0 + most_in_one_group(call, t)));
}

template <typename T>
void move_channels(T* dst, const T* src, uint32_t n, uint32_t c, uint32_t hw, bool channels_last) {
  for (uint32_t b = 0; b < n; b++, dst += uint64_t(c) * hw, src += uint64_t(c) * hw)
    for (uint32_t i = 0; i < c; i++)
      for (uint32_t k = 0; k < hw; k++)
        if (channels_last)
          dst[uint64_t(k) * c + i] = src[uint64_t(i) * hw + k];
        else
          dst[uint64_t(i) * hw + k] = src[uint64_t(k) * c + i];
}

}  // namespace

void transpose_rows(const RowTranspose& t, const char* api) {
  LocalCall call(api, VNPU_PC);
  turn_rows(call, t);
}

void set_address_register(uint32_t index, const uint64_t addresses[8]) {
  std::memcpy(core().va[index], addresses, sizeof(core().va[index]));
  core().scalar(ScalarKind::Cycle, 8);  // eight moves to special registers
}

void transpose_rows_by_register(uint32_t dst, uint32_t src, DType dtype, uint32_t repeat, uint32_t dst_rep_stride,
                                uint32_t src_rep_stride, const char* api) {
  LocalCall call(api, VNPU_PC);
  RowTranspose t;
  t.dst = core().va[dst];  // and the register behind it
  t.src = core().va[src];
  t.dtype = dtype;
  t.repeat = repeat;
  t.dst_rep_stride = dst_rep_stride;
  t.src_rep_stride = src_rep_stride;
  turn_rows(call, t);
}

void transpose_16x16(void* dst, const void* src, DType dtype, const char* api) {
  LocalCall call(api, VNPU_PC);
  if (dtype != DType::F16 && dtype != DType::I16 && dtype != DType::U16) unsupported_dtype(api, dtype, call.pc);
  call.read(src, 512, "source");
  call.write(dst, 512, "destination");
  uint16_t in[16][16];
  std::memcpy(in, src, sizeof(in));
  uint16_t* out = static_cast<uint16_t*>(dst);
  for (uint32_t i = 0; i < 16; i++)
    for (uint32_t j = 0; j < 16; j++) out[i * 16 + j] = in[j][i];
  call.issue("Transpose", dtype, 2);
}

// Estimated cost: two passes of the transposing instruction over the data padded to tiles, one of them with a head per
// 16 channels; the reference gives no figure.
void transpose_channels(void* dst, const void* src, void* work, DType dtype, uint32_t n, uint32_t c, uint32_t hw,
                        bool channels_last) {
  LocalCall call("Transpose", VNPU_PC);
  check_dtype(call, dtype);
  if (n == 0 || c == 0 || hw == 0) return;
  uint32_t size = dtype_size(dtype);
  call.require(c <= 4095 && hw <= 4095, "cSize and hSize * wSize have to be in 0..4095");
  call.require(hw * size % kBlockBytes == 0, "hSize * wSize * sizeof(T) has to be a multiple of 32 B");
  uint64_t bytes = uint64_t(n) * c * hw * size;
  uint32_t h0 = size == 1 ? 32 : 16, tile = h0 * kBlockBytes;
  call.read(src, bytes, "source");
  call.write(dst, bytes, "destination");
  call.write(work, uint64_t(channels_last ? c + 2 : 2 * c + 1) * tile, "sharedTmpBuffer");
  if (size == 1)
    move_channels(static_cast<uint8_t*>(dst), static_cast<const uint8_t*>(src), n, c, hw, channels_last);
  else if (size == 2)
    move_channels(static_cast<uint16_t*>(dst), static_cast<const uint16_t*>(src), n, c, hw, channels_last);
  else
    move_channels(static_cast<uint32_t*>(dst), static_cast<const uint32_t*>(src), n, c, hw, channels_last);
  uint32_t groups = (c + 15) / 16;
  double per_pass = double(groups) * 16 * hw / elements_per_cycle(size);
  Composite cost(call.core);
  cost.add_heads("TransDataTo5HD", n * 2.0 * groups, n * 2 * per_pass);
  call.issue(cost.work());
}

}  // namespace vnpu
