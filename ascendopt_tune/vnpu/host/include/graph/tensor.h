// Parts of the graph tensor interface that operator sources name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
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

// What is known of an operator's input or output before it runs.
class TensorDesc {
 public:
  TensorDesc() = default;
  explicit TensorDesc(Shape shape, Format format = FORMAT_ND, DataType data_type = DT_FLOAT)
      : shape_(std::move(shape)), format_(format), data_type_(data_type) {}
  Shape GetShape() const { return shape_; }
  Shape GetOriginShape() const { return shape_; }
  Format GetFormat() const { return format_; }
  Format GetOriginFormat() const { return format_; }
  DataType GetDataType() const { return data_type_; }

 private:
  Shape shape_;
  Format format_ = FORMAT_ND;
  DataType data_type_ = DT_FLOAT;
};

// A tensor with its values on the host.
class Tensor {
 public:
  Tensor() = default;
  Tensor(TensorDesc desc, std::vector<uint8_t> data) : desc_(std::move(desc)), data_(std::move(data)) {}
  TensorDesc GetTensorDesc() const { return desc_; }
  const uint8_t* GetData() const { return data_.data(); }
  uint8_t* GetData() { return data_.data(); }
  size_t GetSize() const { return data_.size(); }  // bytes

 private:
  TensorDesc desc_;
  std::vector<uint8_t> data_;
};

}  // namespace ge
