// gert::Stride: how a tensor that isn't contiguous lies. Here every tensor is contiguous, and contexts have none.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gert {

class Stride {
 public:
  size_t GetDimNum() const { return 0; }
  int64_t GetStride(size_t) const { return 0; }
};

}  // namespace gert
