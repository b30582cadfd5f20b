// Composite APIs made of several vector instructions: what include/ascendc/adv_compose.h needs of libvnpu.so.
#pragma once
#include "device.h"

namespace vnpu {

// The local memory behind the kernel's buffers, which the device's composite APIs use when they get no temporary
// tensor.
void* local_rest();
uint32_t local_rest_bytes();

// dst[rows, columns] from src[1, columns] (axis 0) or src[rows, 1] (axis 1); `copies` says neither axis is broadcast.
struct Broadcast {
  uint32_t rows = 1, columns = 1;
  int axis = 0;
  bool copies = false;
};
void broadcast(void* dst, const void* src, void* work, uint64_t work_bytes, DType dtype, const Broadcast& b);

// Sum (or mean) of the first `n` of every `inner` elements, `outer` rows. `in_float`: half is summed in float.
void row_sum(void* dst, const void* src, void* work, DType dtype, uint32_t outer, uint32_t inner, uint32_t n, bool mean,
             bool in_float, const char* api);

// Row-wise softmax of [rows, columns], of which `valid` columns count. sum and max (may be null) get one 32-byte block
// a row, all of one value.
struct Softmax {
  void* dst = nullptr;
  void *sum = nullptr, *max = nullptr;
  const void* src = nullptr;
  void* work = nullptr;
  DType dtype = DType::None, statistics = DType::None;
  uint32_t rows = 0, columns = 0, valid = 0;
  bool log10 = false;  // of the quotients
};
void softmax(const Softmax& s, const char* api);

}  // namespace vnpu
