// Whole-number arithmetic of kernels of CANN's open operator repositories (opbase, op_common/op_kernel/math_util.h).
// Sums are made in 64 bits, or in 32 for types of one or two bytes, and without sign.
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernel_operator.h"

namespace Ops {
namespace Base {

template <typename T>
using WideOf = std::conditional_t<sizeof(T) <= sizeof(uint16_t), uint32_t, uint64_t>;

template <typename T>
__aicore__ inline T CeilDiv(T a, T b) {
  using Wide = WideOf<T>;
  return static_cast<T>((static_cast<Wide>(a) + static_cast<Wide>(b) - 1) / static_cast<Wide>(b));
}

template <typename T>
__aicore__ inline T FloorDiv(T a, T b) {
  return a / b;
}

template <typename T>
__aicore__ inline T CeilAlign(T a, T b) {
  return static_cast<T>(static_cast<WideOf<T>>(CeilDiv(a, b)) * static_cast<WideOf<T>>(b));
}

template <typename T>
__aicore__ inline T FloorAlign(T a, T b) {
  return a / b * b;
}

}  // namespace Base
}  // namespace Ops
