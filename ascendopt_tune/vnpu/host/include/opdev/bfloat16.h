// op::bfloat16 on the host, 16 bits; arithmetic goes through float, back to nearest, ties to even.
#pragma once
#include <cstdint>
#include <cstring>
#include <ostream>
#include <type_traits>

namespace op {

struct bfloat16 {
  uint16_t value = 0;

  constexpr bfloat16() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  bfloat16(T number) : value(rounded(static_cast<float>(number))) {}
  operator float() const {
    const uint32_t bits = static_cast<uint32_t>(value) << 16;
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
  }

 private:
  static uint16_t rounded(float number) {
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    if (number != number) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

inline std::ostream& operator<<(std::ostream& out, bfloat16 number) { return out << static_cast<float>(number); }

}  // namespace op
