// JSON values by the names of the library that CANN's tiling programs take for them (nlohmann/json, which is not part
// of CANN): reading, looking up, converting, writing. It is the project's own, and small, as each of dozens of sources
// includes it; a template, as the library's is, because the compiler then makes nothing of it where nobody uses it. An
// operator that brings the library itself gets that, since its own folders are searched first.
#pragma once
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nlohmann {

template <typename = void>
class basic_json {
 public:
  using json = basic_json;
  using Map = std::map<std::string, json>;

  struct exception : std::exception {
    explicit exception(std::string text) : text_(std::move(text)) {}
    const char* what() const noexcept override { return text_.c_str(); }

   private:
    std::string text_;
  };
  struct parse_error : exception {
    using exception::exception;
  };
  struct type_error : exception {
    using exception::exception;
  };
  struct out_of_range : exception {
    using exception::exception;
  };

  basic_json() = default;
  basic_json(std::nullptr_t) {}                                                // NOLINT: implicit
  basic_json(bool value) : kind_(Kind::Bool), integer_(value) {}               // NOLINT: implicit
  basic_json(const char* text) : kind_(Kind::Text), text_(text) {}             // NOLINT: implicit
  basic_json(std::string text) : kind_(Kind::Text), text_(std::move(text)) {}  // NOLINT: implicit
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int> = 0>
  basic_json(T value) : kind_(std::is_integral_v<T> ? Kind::Integer : Kind::Real) {  // NOLINT: implicit
    integer_ = static_cast<int64_t>(value);
    real_ = static_cast<double>(value);
  }
  template <typename T>
  basic_json(const std::vector<T>& values)
      : kind_(Kind::Array), array_(values.begin(), values.end()) {}  // NOLINT: implicit
  template <typename T>
  basic_json(const std::map<std::string, T>& values) : kind_(Kind::Object) {  // NOLINT: implicit
    for (const auto& [key, value] : values) object_[key] = value;
  }

  bool is_null() const { return kind_ == Kind::Null; }
  bool is_boolean() const { return kind_ == Kind::Bool; }
  bool is_number() const { return kind_ == Kind::Integer || kind_ == Kind::Real; }
  bool is_string() const { return kind_ == Kind::Text; }
  bool is_array() const { return kind_ == Kind::Array; }
  bool is_object() const { return kind_ == Kind::Object; }
  size_t size() const { return is_array() ? array_.size() : is_object() ? object_.size() : is_null() ? 0 : 1; }
  bool empty() const { return size() == 0; }

  bool contains(const std::string& key) const { return object_.count(key) != 0; }
  size_t count(const std::string& key) const { return object_.count(key); }
  const json& at(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw out_of_range("JSON: no key " + key);
    return found->second;
  }
  const json& at(size_t index) const {
    if (index >= array_.size()) throw out_of_range("JSON: no element " + std::to_string(index));
    return array_[index];
  }
  const json& operator[](const std::string& key) const { return at(key); }
  const json& operator[](const char* key) const { return at(std::string(key)); }
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  const json& operator[](T index) const {
    return at(static_cast<size_t>(index));
  }
  json& operator[](const std::string& key) {
    if (is_null()) kind_ = Kind::Object;
    if (!is_object()) throw type_error("JSON: a key of what is no object");
    return object_[key];
  }
  json& operator[](const char* key) { return (*this)[std::string(key)]; }
  void push_back(const json& value) {
    if (is_null()) kind_ = Kind::Array;
    if (!is_array()) throw type_error("JSON: an element of what is no array");
    array_.push_back(value);
  }

  // Over an object's or an array's values, in order of keys.
  class const_iterator {
   public:
    const_iterator(const json* owner, typename Map::const_iterator entry, size_t index)
        : owner_(owner), entry_(entry), index_(index) {}
    const std::string& key() const { return entry_->first; }
    const json& value() const { return owner_->is_object() ? entry_->second : owner_->array_[index_]; }
    const json& operator*() const { return value(); }
    const json* operator->() const { return &value(); }
    const_iterator& operator++() {
      if (owner_->is_object())
        ++entry_;
      else
        ++index_;
      return *this;
    }
    const_iterator operator++(int) {
      const const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator& o) const { return entry_ == o.entry_ && index_ == o.index_; }
    bool operator!=(const const_iterator& o) const { return !(*this == o); }

   private:
    const json* owner_;
    typename Map::const_iterator entry_;
    size_t index_;
  };
  using iterator = const_iterator;
  const_iterator begin() const { return {this, object_.begin(), 0}; }
  const_iterator end() const { return {this, object_.end(), array_.size()}; }
  const_iterator cend() const { return end(); }
  const_iterator find(const std::string& key) const { return {this, object_.find(key), array_.size()}; }

  template <typename T>
  T get() const {
    T value{};
    read(value);
    return value;
  }
  template <typename T>
  void get_to(T& value) const {
    read(value);
  }
  template <typename T>
  static constexpr bool converts =
      std::is_same_v<T, std::string> || (std::is_arithmetic_v<T> && !std::is_same_v<T, char>);
  template <typename T, std::enable_if_t<converts<T>, int> = 0>
  operator T() const {  // NOLINT: implicit
    return get<T>();
  }
  template <typename T>
  operator std::vector<T>() const {  // NOLINT: implicit
    return get<std::vector<T>>();
  }

  friend bool operator==(const json& a, const json& b) {
    if (a.is_number() && b.is_number()) return a.real_ == b.real_;
    return a.kind_ == b.kind_ && a.integer_ == b.integer_ && a.text_ == b.text_ && a.array_ == b.array_ &&
           a.object_ == b.object_;
  }
  friend bool operator!=(const json& a, const json& b) { return !(a == b); }
  friend bool operator==(const json& a, const char* b) { return a.is_string() && a.text_ == b; }
  friend bool operator!=(const json& a, const char* b) { return !(a == b); }

  static json parse(const std::string& text) {
    Reader reader{text};
    const json value = reader.value();
    reader.space();
    if (reader.at < text.size()) reader.fail();
    return value;
  }
  static bool accept(const std::string& text) {
    try {
      parse(text);
      return true;
    } catch (const exception&) {
      return false;
    }
  }
  std::string dump() const {
    char number[32];
    std::string out;
    switch (kind_) {
      case Kind::Null:
        return "null";
      case Kind::Bool:
        return integer_ != 0 ? "true" : "false";
      case Kind::Integer:
        return std::to_string(integer_);
      case Kind::Real:
        std::snprintf(number, sizeof number, "%.17g", real_);
        return number;
      case Kind::Text:
        return quoted(text_);
      case Kind::Array:
        for (const json& value : array_) out += (out.empty() ? "" : ",") + value.dump();
        return "[" + out + "]";
      case Kind::Object:
        for (const auto& [key, value] : object_) out += (out.empty() ? "" : ",") + quoted(key) + ":" + value.dump();
        return "{" + out + "}";
    }
    return out;
  }

 private:
  enum class Kind { Null, Bool, Integer, Real, Text, Array, Object };

  struct Reader {
    const std::string& text;
    size_t at = 0;
    int depth = 0;

    [[noreturn]] void fail() const { throw parse_error("JSON: not understood at character " + std::to_string(at)); }
    void space() {
      while (at < text.size() && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r'))) ++at;
    }
    bool take(const std::string& word) {
      space();
      if (text.compare(at, word.size(), word) != 0) return false;
      at += word.size();
      return true;
    }
    void need(const std::string& word) {
      if (!take(word)) fail();
    }
    json value() {
      if (take("null")) return nullptr;
      if (take("true")) return true;
      if (take("false")) return false;
      if (depth > 500) fail();  // a stack has an end
      depth++;
      const bool is_object = take("{");
      json out = is_object || take("[") ? (is_object ? object() : array()) : simple();
      depth--;
      return out;
    }
    json simple() {
      if (at < text.size() && text[at] == '"') return string();
      return number();
    }
    json object() {
      json out;
      out.kind_ = Kind::Object;
      if (take("}")) return out;
      do {
        space();
        const std::string key = string();
        need(":");
        out.object_[key] = value();
      } while (take(","));
      need("}");
      return out;
    }
    json array() {
      json out;
      out.kind_ = Kind::Array;
      if (take("]")) return out;
      do out.array_.push_back(value());
      while (take(","));
      need("]");
      return out;
    }
    std::string string() {
      need("\"");
      std::string out;
      while (at < text.size() && text[at] != '"') {
        if (text[at] != '\\') {
          out += text[at++];
          continue;
        }
        static const std::string names = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
        if (text.compare(at, 2, "\\u") == 0) {
          add_utf8(out, code_point());
          continue;
        }
        const size_t which = at + 1 < text.size() ? names.find(text[at + 1]) : std::string::npos;
        if (which == std::string::npos) fail();
        out += meant[which];
        at += 2;
      }
      need("\"");
      return out;
    }
    uint32_t code_unit() {
      uint32_t unit = 0;
      if (text.compare(at, 2, "\\u") != 0 || at + 6 > text.size()) fail();
      for (const size_t end = at + 6, begin = at + 2; at < end; at++) {
        if (at < begin) continue;
        const char c = text[at];
        if (!std::isxdigit(static_cast<unsigned char>(c))) fail();
        unit = unit * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
      }
      return unit;
    }
    uint32_t code_point() {
      const uint32_t first = code_unit();
      if (first < 0xD800 || first > 0xDBFF) return first;
      const uint32_t second = code_unit();
      if (second < 0xDC00 || second > 0xDFFF) fail();
      return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    }
    static void add_utf8(std::string& out, uint32_t point) {
      if (point < 0x80) {
        out += static_cast<char>(point);
        return;
      }
      const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
      const uint32_t lead = more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0;
      out += static_cast<char>(lead | point >> (6 * more));
      for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | (point >> (6 * i) & 0x3F));
    }
    size_t digits() {
      const size_t begin = at;
      while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) at++;
      if (at == begin) fail();
      return at - begin;
    }
    json number() {
      const size_t begin = at;
      bool whole = true;
      if (text.compare(at, 1, "-") == 0) at++;
      const size_t first = at;
      if (digits() > 1 && text[first] == '0') fail();
      if (at < text.size() && text[at] == '.') {
        at++;
        digits();
        whole = false;
      }
      if (at < text.size() && (text[at] | 0x20) == 'e') {
        at++;
        if (at < text.size() && (text[at] == '+' || text[at] == '-')) at++;
        digits();
        whole = false;
      }
      const std::string number = text.substr(begin, at - begin);
      const double real = std::strtod(number.c_str(), nullptr);
      if (!std::isfinite(real)) fail();
      if (whole) return std::strtoll(number.c_str(), nullptr, 10);
      return real;
    }
  };

  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      char code[8] = {c, 0};
      if (static_cast<unsigned char>(c) < 0x20) std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      if (c == '"' || c == '\\') out += '\\';
      out += code;
    }
    return out + "\"";
  }
  void need(bool fits, const char* what) const {
    if (!fits) throw type_error(std::string("JSON: not ") + what);
  }
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  void read(T& value) const {
    need(std::is_same_v<T, bool> ? is_boolean() : is_number() || is_boolean(), "a number or boolean");
    value = kind_ == Kind::Real ? static_cast<T>(real_) : static_cast<T>(integer_);
  }
  void read(std::string& value) const {
    need(is_string(), "a string");
    value = text_;
  }
  template <typename T>
  void read(std::vector<T>& values) const {
    need(is_array(), "an array");
    for (const json& value : array_) values.push_back(value.get<T>());
  }
  template <typename T>
  void read(std::map<std::string, T>& values) const {
    need(is_object(), "an object");
    for (const auto& [key, value] : object_) values[key] = value.template get<T>();
  }

  Kind kind_ = Kind::Null;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<json> array_;
  Map object_;
};

using json = basic_json<>;

}  // namespace nlohmann
