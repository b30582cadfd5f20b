// gert::Tensor: shape, format, type and, where the tiling function may read the values, their address on the host.
#pragma once
#include <cstddef>
#include <cstdio>

#include "exe_graph/runtime/storage_format.h"
#include "exe_graph/runtime/storage_shape.h"
#include "graph/types.h"

namespace gert {

enum TensorPlacement { kOnDeviceHbm, kOnHost, kFollowing, kOnDeviceP2p, kTensorPlacementEnd };

struct TensorPlacementUtils {
  static bool IsOnHost(TensorPlacement placement) { return placement == kOnHost || placement == kFollowing; }
  static bool IsOnDeviceHbm(TensorPlacement placement) { return placement == kOnDeviceHbm; }
  static bool IsOnDevice(TensorPlacement placement) { return placement == kOnDeviceHbm || placement == kOnDeviceP2p; }
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(const StorageShape& shape, const StorageFormat& format, ge::DataType data_type, void* host_data = nullptr)
      : shape_(shape), format_(format), data_type_(data_type), data_(host_data) {}

  int64_t GetShapeSize() const { return shape_.GetStorageShape().GetShapeSize(); }
  size_t GetSize() const {  // bytes
    int64_t bytes = ge::GetSizeInBytes(GetShapeSize(), data_type_);
    return bytes < 0 ? 0 : static_cast<size_t>(bytes);
  }
  const StorageShape& GetShape() const { return shape_; }
  StorageShape& GetShape() { return shape_; }
  const Shape& GetStorageShape() const { return shape_.GetStorageShape(); }
  const Shape& GetOriginShape() const { return shape_.GetOriginShape(); }
  Shape& MutableStorageShape() { return shape_.MutableStorageShape(); }
  Shape& MutableOriginShape() { return shape_.MutableOriginShape(); }
  ge::DataType GetDataType() const { return data_type_; }
  void SetDataType(ge::DataType data_type) { data_type_ = data_type; }
  const StorageFormat& GetFormat() const { return format_; }
  ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }
  ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }
  void SetStorageFormat(ge::Format format) { format_.SetStorageFormat(format); }
  void SetOriginFormat(ge::Format format) { format_.SetOriginFormat(format); }
  TensorPlacement GetPlacement() const { return data_ == nullptr ? kOnDeviceHbm : kOnHost; }

  // nullptr when the values are not on the host.
  const void* GetAddr() const { return data_; }
  void* GetAddr() { return data_; }
  template <typename T>
  const T* GetData() const {
    return static_cast<const T*>(Values());
  }
  template <typename T>
  T* GetData() {
    return static_cast<T*>(Values());
  }

 private:
  void* Values() const {  // who goes on without them crashes, and then is told what this printed
    if (data_ == nullptr)
      std::fputs("GetData: an input's values are not on the host; mark it ValueDepend(REQUIRED) in its definition.\n",
                 stderr);
    return data_;
  }

  StorageShape shape_;
  StorageFormat format_;
  ge::DataType data_type_ = ge::DT_UNDEFINED;
  void* data_ = nullptr;
};

}  // namespace gert
