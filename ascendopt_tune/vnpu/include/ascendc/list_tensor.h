// ListTensorDesc and TensorDesc: how a kernel finds the tensors of a dynamic input or output.
//
// Layout of the block in GM (AscendC reference, ListTensorDesc): byte offset of the pointer array; then for each tensor
// its index << 32 | number of dimensions and the dimensions; then the device pointers. Without shapes there is a single
// entry, count << 32, and a filler word.
#pragma once
#include "tensor.h"

namespace AscendC {

template <class T>
class TensorDesc {
 public:
  void SetShapeAddr(uint64_t* shapePtr) { shape_ = shapePtr; }
  uint64_t GetDim() { return dim_; }
  uint64_t GetIndex() { return index_; }
  ASCENDC_INLINE uint64_t GetShape(uint32_t offset) {
    if (offset >= dim_) vnpu::misuse("TensorDesc::GetShape", "there is no such dimension");
    return shape_[offset];
  }
  T* GetDataPtr() { return ptr_; }
  GlobalTensor<T> GetDataObj() {
    uint64_t size = 1;
    for (uint32_t i = 0; i < dim_; i++) size *= shape_[i];
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(ptr_, size);
    return tensor;
  }
  friend class ListTensorDesc;

 private:
  uint32_t dim_ = 0, index_ = 0;
  uint64_t* shape_ = nullptr;
  T* ptr_ = nullptr;
};

class ListTensorDesc {
 public:
  ListTensorDesc() = default;
  ASCENDC_INLINE ListTensorDesc(void* data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff) {
    Init(data, length, shapeSize);
  }
  // `length` (bytes of the block) and `shapeSize` (number of pointers) are checked when both are given.
  ASCENDC_INLINE void Init(void* data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff) {
    entries_ = static_cast<uint64_t*>(data) + 1;
    uint64_t offset = word(static_cast<uint64_t*>(data)), first = word(entries_);
    pointers_ = static_cast<uint64_t*>(data) + offset / sizeof(uint64_t);
    has_shapes_ = (first & 0xffffffff) != 0;
    count_ = 0;
    if (!has_shapes_) {
      count_ = static_cast<uint32_t>(first >> 32);
    } else {
      // The device reads the first and the last entry and reckons with as many dimensions each; entries that differ
      // are counted here, too, at the same price.
      uint64_t* last = entries_;
      for (uint64_t* e = entries_; e < pointers_; e += 1 + (*e & 0xffffffff), count_++) last = e;
      word(last);
    }
    if (length != 0xffffffff && shapeSize != 0xffffffff &&
        (count_ != shapeSize || length != offset + count_ * sizeof(uint64_t)))
      vnpu::misuse("ListTensorDesc", "the block's length or number of tensors isn't the one given");
  }
  template <class T>
  ASCENDC_INLINE void GetDesc(TensorDesc<T>& desc, uint32_t index) {
    if (index >= count_ || !has_shapes_ || !desc.shape_)
      vnpu::misuse("ListTensorDesc::GetDesc", "no such tensor, no shapes in the list, or SetShapeAddr wasn't called");
    uint64_t* e = entries_;
    for (uint32_t i = 0; i < index; i++) e += 1 + (*e & 0xffffffff);
    desc.dim_ = static_cast<uint32_t>(word(e));
    desc.index_ = index;
    desc.ptr_ = GetDataPtr<T>(index);
    for (uint32_t i = 0; i < desc.dim_; i++) desc.shape_[i] = word(e + 1 + i);
  }
  template <class T>
  ASCENDC_INLINE T* GetDataPtr(uint32_t index) {
    if (index >= count_) vnpu::misuse("ListTensorDesc::GetDataPtr", "the list has no tensor of this index");
    return reinterpret_cast<T*>(word(pointers_ + index));
  }
  uint32_t GetSize() { return count_; }

 private:
  ASCENDC_INLINE static uint64_t word(const uint64_t* p) {
    vnpu::scalar_access(p, sizeof(uint64_t), false, "ListTensorDesc");
    return *p;
  }
  uint64_t *entries_ = nullptr, *pointers_ = nullptr;
  uint32_t count_ = 0;
  bool has_shapes_ = false;
};

}  // namespace AscendC
