// The high-level Transpose: what include/ascendc/adv_transpose.h needs of libvnpu.so.
#pragma once
#include "device.h"

namespace vnpu {

// From tiles of 16 x 16 (NZ) of [B, N, S, D] or [B, S, N * D] to rows (ND) or tiles of: [B, S, N, D] (swap),
// [B, N, S, D] (split), [B, S, N * D] (join). S fills tiles.
struct LayoutTranspose {
  enum Kind { kSwapToNd, kSwapToNz, kSplitToNz, kSplitToNd, kJoinToNd, kJoinToNz };
  Kind kind = kSwapToNd;
  void* dst = nullptr;
  const void* src = nullptr;
  void* work = nullptr;
  DType dtype = DType::None;
  uint32_t b = 0, n = 0, s = 0, d = 0;
  uint32_t temporary = 0;  // elements of `work` that are used
};
void transpose_layout(const LayoutTranspose& t, const char* api);

}  // namespace vnpu
