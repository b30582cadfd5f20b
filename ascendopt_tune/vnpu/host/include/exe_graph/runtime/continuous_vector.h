// Lists as attributes: the elements follow the header in memory.
#pragma once
#include <cstddef>

namespace gert {

class ContinuousVector {
 public:
  size_t GetSize() const { return size_; }
  size_t GetCapacity() const { return size_; }
  const void* GetData() const { return this + 1; }
  void* MutableData() { return this + 1; }
  explicit ContinuousVector(size_t size) : size_(size) {}

 private:
  size_t size_;
};

template <typename T>
class TypedContinuousVector : public ContinuousVector {
 public:
  using ContinuousVector::ContinuousVector;
  const T* GetData() const { return static_cast<const T*>(ContinuousVector::GetData()); }
  T* MutableData() { return static_cast<T*>(ContinuousVector::MutableData()); }
};

}  // namespace gert
