// Printing and assertions. Prints go to the process's standard output, as the device's prints do on the host; they cost
// no modelled time. A failed assertion ends the launch.
#pragma once
#include "tensor.h"
#include "vnpu/dump.h"

namespace AscendC {

namespace detail {
// printf takes numbers as double or integers.
template <typename T>
ASCENDC_INLINE auto printable(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>)
    return static_cast<double>(static_cast<float>(v));
  else
    return v;
}
}  // namespace detail

template <typename... Args>
ASCENDC_INLINE void printf(const char* fmt, Args... args) {
  vnpu::print(fmt, detail::printable(args)...);
}
template <typename... Args>
ASCENDC_INLINE void PRINTF(const char* fmt, Args... args) {
  vnpu::print(fmt, detail::printable(args)...);
}
// The first dumpSize elements, with a number of the caller's choice.
template <typename T>
ASCENDC_INLINE void DumpTensor(const LocalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize) {
  vnpu::print("DumpTensor: block=%u desc=%u size=%u", vnpu::block_idx(), desc, dumpSize);
  vnpu::dump(tensor.pointer(), vnpu::dtype_of<T>(), dumpSize, "DumpTensor");
  vnpu::print("\n");
}
template <typename T>
ASCENDC_INLINE void DumpTensor(const GlobalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize) {
  vnpu::print("DumpTensor: block=%u desc=%u size=%u", vnpu::block_idx(), desc, dumpSize);
  vnpu::dump(tensor.pointer(), vnpu::dtype_of<T>(), dumpSize, "DumpTensor");
  vnpu::print("\n");
}
[[noreturn]] ASCENDC_INLINE void Trap() { vnpu::misuse("Trap", "the kernel stopped itself"); }

}  // namespace AscendC

#define VNPU_ASSERT(NAME, CONDITION, ...) ((CONDITION) ? (void)0 : vnpu::misuse(NAME, "assertion failed: " #CONDITION))
// Whole statements: where CANN makes it nothing at all, kernels get away without a semicolon behind it.
#define ASSERT(...) VNPU_ASSERT("ASSERT", __VA_ARGS__, );
#define ASSERT_MSG(...) VNPU_ASSERT("ASSERT_MSG", __VA_ARGS__, );
#define ASCENDC_ASSERT(...) VNPU_ASSERT("ASCENDC_ASSERT", __VA_ARGS__, );
#define ascendc_assert(...) VNPU_ASSERT("ascendc_assert", __VA_ARGS__, )
#define KERNEL_LOG(LEVEL, ...)
#undef assert
#define assert(...) VNPU_ASSERT("assert", __VA_ARGS__, )
