// LocalTensor and GlobalTensor: typed views of local and global memory (AscendC reference, data structures).
#pragma once
#include "kernel_tiling/transform_data.h"
#include "types.h"

namespace AscendC {

// What SetShapeInfo keeps beside a tensor, and high-level APIs without a shape of their own read.
struct ShapeInfo {
  ASCENDC_INLINE ShapeInfo() = default;
  ASCENDC_INLINE ShapeInfo(const uint8_t inputShapeDim, const uint32_t inputShape[],
                           const uint8_t inputOriginalShapeDim, const uint32_t inputOriginalShape[],
                           const DataFormat inputFormat)
      : shapeDim(inputShapeDim), originalShapeDim(inputOriginalShapeDim), dataFormat(inputFormat) {
    if (inputShapeDim > 8 || inputOriginalShapeDim > 8) vnpu::misuse("ShapeInfo", "a shape has at most 8 axes");
    for (int i = 0; i < shapeDim; i++) shape[i] = inputShape[i];
    for (int i = 0; i < originalShapeDim; i++) originalShape[i] = inputOriginalShape[i];
  }
  ASCENDC_INLINE ShapeInfo(const uint8_t inputShapeDim, const uint32_t inputShape[],
                           const DataFormat inputFormat = DataFormat::ND)
      : ShapeInfo(inputShapeDim, inputShape, inputShapeDim, inputShape, inputFormat) {}
  uint8_t shapeDim = 0, originalShapeDim = 0;
  uint32_t shape[8] = {}, originalShape[8] = {};
  DataFormat dataFormat = DataFormat::ND;
};

template <typename T>
class LocalTensor;

// Where a local tensor lies, without its type: address_ of a tensor, which operators and CANN's headers hand on.
using TBufHandle = void*;
struct TBuffAddr {
  uint8_t logicPos = static_cast<uint8_t>(TPosition::MAX);  // MAX: nobody has said; then what uses it says
  uint32_t dataLen = 0;                                     // bytes
  uint32_t bufferAddr = 0;            // without absAddr: from the begin of the position's memory, in bytes
  TBufHandle bufferHandle = nullptr;  // the queue buffer it was allocated from
  uint8_t* absAddr = nullptr;
};

namespace detail {
// Where it lies. What nobody has placed begins, as on the device, at byte 0 of its memory.
ASCENDC_INLINE uint8_t* placed(const TBuffAddr& a) {
  if (a.absAddr != nullptr) return a.absAddr;
  return static_cast<uint8_t*>(vnpu::local_base(memory_of(static_cast<TPosition>(a.logicPos)))) + a.bufferAddr;
}
// The same for an instruction that knows one memory alone.
ASCENDC_INLINE uint8_t* placed_in(vnpu::Memory memory, const TBuffAddr& a) {
  if (a.absAddr != nullptr || a.logicPos != static_cast<uint8_t>(TPosition::MAX)) return placed(a);
  return static_cast<uint8_t*>(vnpu::local_base(memory)) + a.bufferAddr;
}
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
      : address_{static_cast<uint8_t>(position), static_cast<uint32_t>(vnpu::bytes_of<T>(size)), 0, nullptr,
                 static_cast<uint8_t*>(vnpu::local_base(detail::memory_of(position))) + addr} {}
  explicit LocalTensor(uint32_t addr)
      : LocalTensor(TPosition::VECCALC, addr, static_cast<uint32_t>(vnpu::elements_in<T>(vnpu::local_bytes() - addr))) {
  }

  ASCENDC_INLINE T GetValue(uint32_t index) const {
    detail::needs_address<T>();
    vnpu::scalar_access(pointer() + index, sizeof(T), false, "LocalTensor::GetValue");
    return pointer()[index];
  }
  template <typename U>
  ASCENDC_INLINE void SetValue(uint32_t index, U value) const {
    detail::needs_address<T>();
    vnpu::scalar_access(pointer() + index, sizeof(T), true, "LocalTensor::SetValue");
    pointer()[index] = static_cast<T>(value);
  }
  ASCENDC_INLINE T& operator()(uint32_t index) const {
    detail::needs_address<T>();
    vnpu::scalar_reference(pointer() + index, sizeof(T), "LocalTensor::operator()");
    return pointer()[index];
  }
  LocalTensor operator[](uint32_t offset) const {
    LocalTensor t = *this;
    const uint32_t size = GetSize();
    const uint64_t bytes = detail::place<T>(offset) * sizeof(T);
    if (t.address_.absAddr != nullptr)
      t.address_.absAddr += bytes;
    else
      t.address_.bufferAddr += static_cast<uint32_t>(bytes);
    t.SetSize(offset < size ? size - offset : 0);
    return t;
  }
  template <typename U>
  LocalTensor<U> ReinterpretCast() const {
    LocalTensor<U> t;
    t.address_ = address_;
    return t;
  }
  ASCENDC_INLINE void operator=(const detail::TensorExpression<T>& e) {
    vnpu::Lanes lanes;
    lanes.count = GetSize();
    vnpu::binary(e.op, operand(), e.a.operand(), e.b.operand(), lanes, e.api);
  }
  template <typename U>
  ASCENDC_INLINE void operator=(const detail::TensorComparison<U>& e) {
    Compare(*this, e.a, e.b, e.mode, e.a.GetSize());
  }
  // A number, as on the device.
  uint64_t GetPhyAddr() const { return reinterpret_cast<uint64_t>(pointer()); }
  uint64_t GetPhyAddr(uint32_t offset) const {
    return reinterpret_cast<uint64_t>(pointer() + detail::place<T>(offset));
  }
  // For the headers of this folder: where it lies; and where, for an instruction that knows one memory alone.
  T* pointer() const { return reinterpret_cast<T*>(detail::placed(address_)); }
  T* pointer_in(vnpu::Memory memory) const { return reinterpret_cast<T*>(detail::placed_in(memory, address_)); }
  int32_t GetPosition() const { return address_.logicPos; }
  TPosition position() const { return static_cast<TPosition>(address_.logicPos); }  // for the headers of this folder
  uint32_t GetSize() const { return static_cast<uint32_t>(vnpu::elements_in<T>(address_.dataLen)); }  // elements
  uint32_t GetLength() const { return address_.dataLen; }                                             // bytes
  void SetSize(uint32_t size) { address_.dataLen = static_cast<uint32_t>(vnpu::bytes_of<T>(size)); }
  void SetBufferLen(uint32_t bytes) { address_.dataLen = bytes; }
  // `size` elements at a byte of a memory that the position says, then or later (address_.logicPos): no TPipe involved.
  void InitBuffer(const uint32_t bufferOffset, const uint32_t bufferSize) {
    address_.absAddr = nullptr;
    address_.bufferAddr = bufferOffset;
    SetSize(bufferSize);
  }
  void SetAddr(const TBuffAddr& address) { address_ = address; }
  TBufHandle GetBufferHandle() const { return address_.bufferHandle; }
  void SetAddrWithOffset(LocalTensor& src, uint32_t offset) { *this = src[offset]; }
  void SetUserTag(int32_t tag) { tag_ = tag; }
  int32_t GetUserTag() const { return tag_; }
  void SetShapeInfo(const ShapeInfo& info) { shape_ = info; }
  ShapeInfo GetShapeInfo() const { return shape_; }

  // For the headers of this folder: an operand with the given strides.
  vnpu::Operand operand(uint16_t blk_stride = 1, uint16_t rep_stride = 8) const {
    return {const_cast<std::remove_cv_t<T>*>(pointer()), vnpu::dtype_of<T>(), blk_stride, rep_stride};
  }
  void Bind(T* ptr, uint32_t size, TPosition position, void* handle) {
    address_ = {static_cast<uint8_t>(position), static_cast<uint32_t>(vnpu::bytes_of<T>(size)), 0, handle,
                reinterpret_cast<uint8_t*>(const_cast<std::remove_cv_t<T>*>(ptr))};
  }
  void* handle() const { return address_.bufferHandle; }

  TBuffAddr address_;

 private:
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
    address_ = buffer;
    size_ = size;
  }
  void SetGlobalBuffer(T* buffer) { SetGlobalBuffer(buffer, 0); }
  T* GetPhyAddr() const { return address_; }
  T* pointer() const { return address_; }
  T* GetPhyAddr(uint64_t offset) const { return address_ + detail::place<T>(offset); }
  ASCENDC_INLINE T GetValue(uint64_t index) const {
    detail::needs_address<T>();
    vnpu::scalar_access(address_ + index, sizeof(T), false, "GlobalTensor::GetValue");
    return address_[index];
  }
  template <typename U>
  ASCENDC_INLINE void SetValue(uint64_t index, U value) {
    detail::needs_address<T>();
    vnpu::scalar_access(address_ + index, sizeof(T), true, "GlobalTensor::SetValue");
    address_[index] = static_cast<T>(value);
  }
  ASCENDC_INLINE T& operator()(uint64_t index) const {
    detail::needs_address<T>();
    vnpu::scalar_reference(address_ + index, sizeof(T), "GlobalTensor::operator()");
    return address_[index];
  }
  GlobalTensor operator[](uint64_t offset) const {
    GlobalTensor t = *this;
    t.address_ += detail::place<T>(offset);
    t.size_ = offset < size_ ? size_ - offset : 0;
    return t;
  }
  uint64_t GetSize() const { return size_; }  // elements
  void SetAddr(uint64_t offset) { *this = (*this)[offset]; }
  void SetShapeInfo(const ShapeInfo& info) { shape_ = info; }
  ShapeInfo GetShapeInfo() const { return shape_; }
  template <CacheRwMode rwMode = CacheRwMode::RW>
  void SetL2CacheHint(CacheMode mode) {
    cache_mode_ = mode;
  }
  bool IsCached() const { return cache_mode_ != CacheMode::CACHE_MODE_DISABLE; }  // of the virtual NPU, not of CANN

  T* address_ = nullptr;

 private:
  uint64_t size_ = 0;
  CacheMode cache_mode_ = CacheMode::CACHE_MODE_NORMAL;
  ShapeInfo shape_;
};

}  // namespace AscendC
