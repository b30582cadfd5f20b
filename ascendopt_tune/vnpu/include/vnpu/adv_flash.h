// SoftmaxFlashV2: what include/ascendc/adv_flash.h needs of libvnpu.so.
#pragma once
#include "device.h"

namespace vnpu {

// A step of an online softmax over rows of [rows, columns], of which `valid` columns count: dst = exp(src - max). What
// is kept of a row (maximum, sum, what the old sum shrinks by) is one element, or a block of 32 bytes of one value
// (`wide`). Without `update` there is nothing before: in_max, in_sum and shrunk are not touched.
struct SoftmaxFlash {
  void* dst = nullptr;
  void *sum = nullptr, *max = nullptr, *shrunk = nullptr;
  void* row_max = nullptr;  // the maximum of these columns alone; may be null
  const void *src = nullptr, *in_sum = nullptr, *in_max = nullptr;
  void* work = nullptr;
  DType dtype = DType::None, statistics = DType::None;  // of dst, src and shrunk; of the others
  uint32_t rows = 0, columns = 0, valid = 0;
  uint32_t work_bytes = 0;  // of the temporary memory that a piece of rows takes
  bool update = false, wide = true;
};
void softmax_flash(const SoftmaxFlash& s);

}  // namespace vnpu
