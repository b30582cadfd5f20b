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

}  // namespace vnpu
