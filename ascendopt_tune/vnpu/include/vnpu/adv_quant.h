// Quantization: what include/ascendc/adv_quant.h needs of libvnpu.so.
#pragma once
#include "device.h"

namespace vnpu {

// dst[m, n rounded up to 32 bytes] = src[m, n] (int32) times scale, of the first `count` columns.
struct Dequant {
  void* dst = nullptr;
  const void* src = nullptr;
  const void* scale = nullptr;  // of `count` columns; null: `one` for all
  float one = 0;
  void* work = nullptr;  // sharedTmpBuffer
  uint64_t work_bytes = 0;
  DType dtype = DType::None, scale_dtype = DType::None;  // of dst and scale
  uint32_t m = 0, n = 0, count = 0;
  bool single_row = false;  // one row of several times `count` columns is as many rows
};
void dequantize(const Dequant& d);

// dst[r, c] (half or bfloat16) = (src[r, c] (int8 or int4) + offset) * scale, with one pair of them for all, or one for
// each column of `share` rows that follow each other; transposed, for `share` columns of each row.
struct AntiQuant {
  void* dst = nullptr;
  const void* src = nullptr;
  const void *offset = nullptr, *scale = nullptr;  // of the type of dst; no scale: `one_offset` and `one_scale` for all
  float one_offset = 0, one_scale = 0;
  void* work = nullptr;  // sharedTmpBuffer
  uint64_t work_bytes = 0;
  DType dtype = DType::None, src_dtype = DType::None;
  uint32_t rows = 0, columns = 0, share = 1;
  bool transposed = false;
};
void antiquantize(const AntiQuant& a);

}  // namespace vnpu
