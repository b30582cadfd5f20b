// gert::TilingData: the bytes the kernel gets, at most GetCapacity() of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "graph/error_codes.h"

namespace gert {

class TilingData {
 public:
  explicit TilingData(size_t capacity) : data_((capacity + 7) / 8), capacity_(capacity) {}

  void* GetData() { return data_.data(); }
  const void* GetData() const { return data_.data(); }
  size_t GetCapacity() const { return capacity_; }
  size_t GetDataSize() const { return size_; }
  void SetDataSize(size_t size) { size_ = size; }
  template <typename T, typename std::enable_if<std::is_trivially_copyable<T>::value, int>::type = 0>
  ge::graphStatus Append(const T& value) {
    return Append(&value, 1);
  }
  template <typename T, typename std::enable_if<std::is_trivially_copyable<T>::value, int>::type = 0>
  ge::graphStatus Append(const T* values, size_t count) {
    const size_t bytes = count * sizeof(T);
    if (size_ + bytes > capacity_) return ge::GRAPH_FAILED;
    std::memcpy(reinterpret_cast<uint8_t*>(data_.data()) + size_, values, bytes);
    size_ += bytes;
    return ge::GRAPH_SUCCESS;
  }

 private:
  std::vector<uint64_t> data_;  // words: the start is aligned to 8 bytes
  size_t capacity_;
  size_t size_ = 0;
};

}  // namespace gert
