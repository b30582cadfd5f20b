// ge::AscendString: a string of CANN's interfaces, independent of the C++ library's ABI.
#pragma once
#include <cstddef>
#include <cstring>
#include <string>

namespace ge {

class AscendString {
 public:
  AscendString() = default;
  AscendString(const char* text) : text_(text == nullptr ? "" : text) {}  // NOLINT: implicit, as CANN's
  AscendString(const char* text, size_t length) : text_(text, length) {}
  const char* GetString() const { return text_.c_str(); }
  size_t GetLength() const { return text_.size(); }
  size_t Find(const AscendString& part) const { return text_.find(part.text_); }
  bool operator<(const AscendString& o) const { return text_ < o.text_; }
  bool operator>(const AscendString& o) const { return text_ > o.text_; }
  bool operator<=(const AscendString& o) const { return text_ <= o.text_; }
  bool operator>=(const AscendString& o) const { return text_ >= o.text_; }
  bool operator==(const AscendString& o) const { return text_ == o.text_; }
  bool operator!=(const AscendString& o) const { return text_ != o.text_; }

 private:
  std::string text_;
};

}  // namespace ge
