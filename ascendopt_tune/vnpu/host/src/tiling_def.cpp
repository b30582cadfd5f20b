// Layout and storage of tiling data; the rules stand in register/tilingdata_base.h.
#include "host.h"

namespace optiling {

TilingDef::~TilingDef() = default;

TilingDef& TilingDef::operator=(const TilingDef& other) {
  if (this != &other) std::memcpy(data_, other.data_, size_ < other.size_ ? size_ : other.size_);
  return *this;
}

void TilingDef::SaveToBuffer(void* destination, size_t capacity) const {
  if (destination != nullptr && capacity >= size_) std::memcpy(destination, data_, size_);
}

void TilingDef::SetDataPtr(void* data) {
  data_ = static_cast<uint8_t*>(data);
  own_.reset();
  for (const Field& field : fields_) {
    if (field.nested != nullptr) field.nested->SetDataPtr(data_ + field.offset);
  }
}

void TilingDef::Pad(const char* name, size_t alignment) {
  const size_t misaligned = size_ % alignment;
  if (misaligned == 0) return;
  fields_.push_back({std::string(name) + "PH", "uint8_t", alignment - misaligned, size_, 1, nullptr});
  size_ += alignment - misaligned;
}

size_t TilingDef::AddField(const char* type, const char* name, size_t element_size, size_t count) {
  Pad(name, element_size);
  const size_t offset = size_;
  fields_.push_back({name, type, count, offset, element_size, nullptr});
  size_ += element_size * (count == 0 ? 1 : count);
  return offset;
}

size_t TilingDef::AddStruct(const char* type, const char* name, TilingDef& nested) {
  Pad(name, 8);
  const size_t offset = size_;
  fields_.push_back({name, type, 0, offset, nested.GetDataSize(), &nested});
  size_ += nested.GetDataSize();
  return offset;
}

void TilingDef::FinishLayout() {
  Pad(class_name_, 8);
  auto words = std::make_unique<uint64_t[]>(size_ / 8 + 1);
  SetDataPtr(words.get());
  own_ = std::move(words);
}

}  // namespace optiling
