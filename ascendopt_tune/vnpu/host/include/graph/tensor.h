// Parts of the graph tensor interface that operator sources name.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "graph/types.h"

namespace ge {

// Extents of a tensor, in elements.
class Shape {
 public:
  Shape() = default;
  explicit Shape(const std::vector<int64_t>& dims) : dims_(dims) {}
  size_t GetDimNum() const { return dims_.size(); }
  int64_t GetDim(size_t i) const { return i < dims_.size() ? dims_[i] : 0; }
  const std::vector<int64_t>& GetDims() const { return dims_; }
  // Elements; 0 when a dimension is, or when there are none.
  int64_t GetShapeSize() const {
    int64_t n = dims_.empty() ? 0 : 1;
    for (int64_t d : dims_) n *= d;
    return n;
  }

 private:
  std::vector<int64_t> dims_;
};

}  // namespace ge
