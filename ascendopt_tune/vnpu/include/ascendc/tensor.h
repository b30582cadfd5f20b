// LocalTensor and GlobalTensor: typed views of local and global memory (AscendC reference, data structures).
#pragma once
#include "types.h"

namespace AscendC {

struct ShapeInfo {
  uint8_t shapeDim = 0, originalShapeDim = 0;
  uint32_t shape[8] = {}, originalShape[8] = {};
};

template <typename T>
class LocalTensor;

namespace detail {
// How many T an element is behind the first one.
template <typename T>
ASCENDC_INLINE uint64_t place(uint64_t element) {
  if constexpr (vnpu::is_half_byte<T>)
    if (element % 2 != 0) vnpu::misuse("int4b_t", "an offset has to be even: two elements share a byte");
  return vnpu::is_half_byte<T> ? element / 2 : element;
}
template <typename T>
constexpr void needs_address() {
  static_assert(!vnpu::is_half_byte<T>, "AscendC: single elements of int4b_t are not covered by the virtual NPU");
}
// `a + b` and the like: computed when it is assigned to a tensor, for as many elements as that has.
template <typename T>
struct TensorExpression {
  vnpu::BinaryOp op;
  const char* api;
  const LocalTensor<T>&a, &b;
};
// `a < b` and the like: one bit per element of `a`.
template <typename T>
struct TensorComparison {
  CMPMODE mode;
  const LocalTensor<T>&a, &b;
};
}  // namespace detail

template <typename T>
class LocalTensor {
 public:
  using PrimType = T;

  LocalTensor() = default;
  // A view of `size` elements at byte `addr` of the position's memory (static tensor programming: no TPipe involved).
  LocalTensor(TPosition position, uint32_t addr, uint32_t size)
      : ptr_(reinterpret_cast<T*>(static_cast<uint8_t*>(vnpu::local_base(detail::memory_of(position))) + addr)),
        size_(size),
        position_(position) {}
  explicit LocalTensor(uint32_t addr)
      : LocalTensor(TPosition::VECCALC, addr, static_cast<uint32_t>(vnpu::elements_in<T>(vnpu::local_bytes() - addr))) {
  }

  ASCENDC_INLINE T GetValue(uint32_t index) const {
    detail::needs_address<T>();
    vnpu::scalar_access(ptr_ + index, sizeof(T), false, "LocalTensor::GetValue");
    return ptr_[index];
  }
  template <typename U>
  ASCENDC_INLINE void SetValue(uint32_t index, U value) const {
    detail::needs_address<T>();
    vnpu::scalar_access(ptr_ + index, sizeof(T), true, "LocalTensor::SetValue");
    ptr_[index] = static_cast<T>(value);
  }
  ASCENDC_INLINE T& operator()(uint32_t index) const {
    detail::needs_address<T>();
    vnpu::scalar_access(ptr_ + index, sizeof(T), true, "LocalTensor::operator()");
    return ptr_[index];
  }
  LocalTensor operator[](uint32_t offset) const {
    LocalTensor t = *this;
    t.ptr_ += detail::place<T>(offset);
    t.size_ = offset < size_ ? size_ - offset : 0;
    return t;
  }
  template <typename U>
  LocalTensor<U> ReinterpretCast() const {
    LocalTensor<U> t;
    t.Bind(reinterpret_cast<U*>(ptr_), static_cast<uint32_t>(vnpu::elements_in<U>(vnpu::bytes_of<T>(size_))), position_,
           handle_);
    return t;
  }
  ASCENDC_INLINE void operator=(const detail::TensorExpression<T>& e) {
    vnpu::Lanes lanes;
    lanes.count = size_;
    vnpu::binary(e.op, operand(), e.a.operand(), e.b.operand(), lanes, e.api);
  }
  template <typename U>
  ASCENDC_INLINE void operator=(const detail::TensorComparison<U>& e) {
    Compare(*this, e.a, e.b, e.mode, e.a.GetSize());
  }
  // A number, as on the device.
  uint64_t GetPhyAddr() const { return reinterpret_cast<uint64_t>(ptr_); }
  uint64_t GetPhyAddr(uint32_t offset) const { return reinterpret_cast<uint64_t>(ptr_ + detail::place<T>(offset)); }
  T* pointer() const { return ptr_; }  // for the headers of this folder
  TPosition GetPosition() const { return position_; }
  uint32_t GetSize() const { return size_; }                                              // elements
  uint32_t GetLength() const { return static_cast<uint32_t>(vnpu::bytes_of<T>(size_)); }  // bytes
  void SetSize(uint32_t size) { size_ = size; }
  void SetBufferLen(uint32_t bytes) { size_ = static_cast<uint32_t>(vnpu::elements_in<T>(bytes)); }
  // What its argument is, address_ of another tensor, is no part of a tensor here.
  template <typename A>
  void SetAddr(const A&) {
    static_assert(!std::is_same_v<A, A>, "AscendC::LocalTensor::SetAddr is not covered by the virtual NPU");
  }
  void SetAddrWithOffset(LocalTensor& src, uint32_t offset) { *this = src[offset]; }
  void SetUserTag(int32_t tag) { tag_ = tag; }
  int32_t GetUserTag() const { return tag_; }
  void SetShapeInfo(const ShapeInfo& info) { shape_ = info; }
  ShapeInfo GetShapeInfo() const { return shape_; }

  // For the headers of this folder: an operand with the given strides.
  vnpu::Operand operand(uint16_t blk_stride = 1, uint16_t rep_stride = 8) const {
    return {const_cast<std::remove_cv_t<T>*>(ptr_), vnpu::dtype_of<T>(), blk_stride, rep_stride};
  }
  void Bind(T* ptr, uint32_t size, TPosition position, void* handle) {
    ptr_ = ptr;
    size_ = size;
    position_ = position;
    handle_ = handle;
  }
  void* handle() const { return handle_; }

 private:
  T* ptr_ = nullptr;
  uint32_t size_ = 0;
  TPosition position_ = TPosition::VECCALC;
  void* handle_ = nullptr;  // the queue buffer it was allocated from
  int32_t tag_ = 0;
  ShapeInfo shape_;
};

#define VNPU_TENSOR_OPERATOR(SYMBOL, OP)                                                                         \
  template <typename T>                                                                                          \
  ASCENDC_INLINE detail::TensorExpression<T> operator SYMBOL(const LocalTensor<T>& a, const LocalTensor<T>& b) { \
    return {vnpu::BinaryOp::OP, "operator" #SYMBOL, a, b};                                                       \
  }
VNPU_TENSOR_OPERATOR(+, Add)
VNPU_TENSOR_OPERATOR(-, Sub)
VNPU_TENSOR_OPERATOR(*, Mul)
VNPU_TENSOR_OPERATOR(/, Div)
VNPU_TENSOR_OPERATOR(|, Or)
VNPU_TENSOR_OPERATOR(&, And)
#undef VNPU_TENSOR_OPERATOR
#define VNPU_TENSOR_COMPARISON(SYMBOL, MODE)                                                                     \
  template <typename T>                                                                                          \
  ASCENDC_INLINE detail::TensorComparison<T> operator SYMBOL(const LocalTensor<T>& a, const LocalTensor<T>& b) { \
    return {CMPMODE::MODE, a, b};                                                                                \
  }
VNPU_TENSOR_COMPARISON(<, LT)
VNPU_TENSOR_COMPARISON(>, GT)
VNPU_TENSOR_COMPARISON(==, EQ)
VNPU_TENSOR_COMPARISON(<=, LE)
VNPU_TENSOR_COMPARISON(>=, GE)
VNPU_TENSOR_COMPARISON(!=, NE)
#undef VNPU_TENSOR_COMPARISON

template <typename T>
class GlobalTensor {
 public:
  using PrimType = T;

  void SetGlobalBuffer(T* buffer, uint64_t size) {
    ptr_ = buffer;
    size_ = size;
  }
  void SetGlobalBuffer(T* buffer) { SetGlobalBuffer(buffer, 0); }
  T* GetPhyAddr() const { return ptr_; }
  T* pointer() const { return ptr_; }
  T* GetPhyAddr(uint64_t offset) const { return ptr_ + detail::place<T>(offset); }
  ASCENDC_INLINE T GetValue(uint64_t index) const {
    detail::needs_address<T>();
    vnpu::scalar_access(ptr_ + index, sizeof(T), false, "GlobalTensor::GetValue");
    return ptr_[index];
  }
  template <typename U>
  ASCENDC_INLINE void SetValue(uint64_t index, U value) {
    detail::needs_address<T>();
    vnpu::scalar_access(ptr_ + index, sizeof(T), true, "GlobalTensor::SetValue");
    ptr_[index] = static_cast<T>(value);
  }
  ASCENDC_INLINE T& operator()(uint64_t index) const {
    detail::needs_address<T>();
    vnpu::scalar_access(ptr_ + index, sizeof(T), true, "GlobalTensor::operator()");
    return ptr_[index];
  }
  GlobalTensor operator[](uint64_t offset) const {
    GlobalTensor t = *this;
    t.ptr_ += detail::place<T>(offset);
    t.size_ = offset < size_ ? size_ - offset : 0;
    return t;
  }
  uint64_t GetSize() const { return size_; }  // elements
  void SetShapeInfo(const ShapeInfo& info) { shape_ = info; }
  ShapeInfo GetShapeInfo() const { return shape_; }
  template <CacheRwMode rwMode = CacheRwMode::RW>
  void SetL2CacheHint(CacheMode mode) {
    cache_mode_ = mode;
  }
  bool IsCached() const { return cache_mode_ != CacheMode::CACHE_MODE_DISABLE; }  // of the virtual NPU, not of CANN

 private:
  T* ptr_ = nullptr;
  uint64_t size_ = 0;
  CacheMode cache_mode_ = CacheMode::CACHE_MODE_NORMAL;
  ShapeInfo shape_;
};

}  // namespace AscendC
