// Transposes in local memory: what include/ascendc/vec_transpose.h needs of libvnpu.so.
#pragma once
#include "device.h"

namespace vnpu {

// 16 rows of 32 bytes each, transposed. Rep strides in 32-byte blocks; a single repeat starts one stride behind the
// addresses (AscendC reference, TransDataTo5HD). 8-bit data: the low or high half of the blocks.
struct RowTranspose {
  const uint64_t* dst = nullptr;  // 16 addresses
  const uint64_t* src = nullptr;
  DType dtype = DType::None;
  uint32_t repeat = 1, dst_rep_stride = 0, src_rep_stride = 0;
  bool dst_high = false, src_high = false;
};
void transpose_rows(const RowTranspose& t, const char* api);
// The address registers that scatter_vnchwconv_* take their rows from: 8 addresses each.
void set_address_register(uint32_t index, const uint64_t addresses[8]);
void transpose_rows_by_register(uint32_t dst, uint32_t src, DType dtype, uint32_t repeat, uint32_t dst_rep_stride,
                                uint32_t src_rep_stride, const char* api);

// 16 x 16 elements of 16 bits.
void transpose_16x16(void* dst, const void* src, DType dtype, const char* api);
// [N, C, HW] to [N, HW, C] (channels_last) or back. `work` is checked for the documented size.
void transpose_channels(void* dst, const void* src, void* work, DType dtype, uint32_t n, uint32_t c, uint32_t hw,
                        bool channels_last);

}  // namespace vnpu
