// Printing and assertions. Prints go to the process's standard output, as the device's prints do on the host; they cost
// no modelled time. A failed assertion ends the launch.
#pragma once
#include <cstdio>

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
template <typename T>
ASCENDC_INLINE void dump(const void* data, uint32_t desc, uint32_t elements, const char* api) {
  vnpu::print("%s: block=%u desc=%u size=%u", api, vnpu::block_idx(), desc, elements);
  vnpu::dump(data, vnpu::dtype_of<T>(), elements, api);
  vnpu::print("\n");
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
  detail::dump<T>(tensor.pointer(), desc, dumpSize, "DumpTensor");
}
template <typename T>
ASCENDC_INLINE void DumpTensor(const GlobalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize) {
  detail::dump<T>(tensor.pointer(), desc, dumpSize, "DumpTensor");
}
// With a shape; the values come in one line all the same.
template <template <typename> class Tensor, typename T>
ASCENDC_INLINE void DumpTensor(const Tensor<T>& tensor, uint32_t desc, uint32_t dumpSize, const ShapeInfo&) {
  DumpTensor(tensor, desc, dumpSize);
}
// From an element on, as a point at which the accuracy is looked at.
template <template <typename> class Tensor, typename T>
ASCENDC_INLINE void DumpAccChkPoint(const Tensor<T>& tensor, uint32_t index, uint32_t countOff, uint32_t dumpSize) {
  detail::dump<T>(tensor[countOff].pointer(), index, dumpSize, "DumpAccChkPoint");
}
[[noreturn]] ASCENDC_INLINE void Trap() { vnpu::misuse("Trap", "the kernel stopped itself"); }

}  // namespace AscendC

// The same by pointers (utils/debug/asc_dump.h): a name for each memory, and one for all of them.
template <typename T>
ASCENDC_INLINE void asc_dump_gm(__gm__ T* input, uint32_t desc, uint32_t dump_size) {
  AscendC::detail::dump<T>(input, desc, dump_size, "asc_dump_gm");
}
template <typename T>
ASCENDC_INLINE void asc_dump_ubuf(__ubuf__ T* input, uint32_t desc, uint32_t dump_size) {
  AscendC::detail::dump<T>(input, desc, dump_size, "asc_dump_ubuf");
}
template <typename T>
ASCENDC_INLINE void asc_dump_l1buf(__cbuf__ T* input, uint32_t desc, uint32_t dump_size) {
  AscendC::detail::dump<T>(input, desc, dump_size, "asc_dump_l1buf");
}
template <typename T>
ASCENDC_INLINE void asc_dump_cbuf(__cc__ T* input, uint32_t desc, uint32_t dump_size) {
  AscendC::detail::dump<T>(input, desc, dump_size, "asc_dump_cbuf");
}
template <typename T>
ASCENDC_INLINE void asc_dump(T* input, uint32_t desc, uint32_t dump_size) {
  AscendC::detail::dump<T>(input, desc, dump_size, "asc_dump");
}

// For a text alone C's printf, which is no template, would be taken; for one with an argument, here of no use, it
// isn't.
#define printf(FORMAT, ...) printf(FORMAT __VA_OPT__(, ) __VA_ARGS__, 0)

#define VNPU_ASSERT(NAME, CONDITION, ...) ((CONDITION) ? (void)0 : vnpu::misuse(NAME, "assertion failed: " #CONDITION))
// CANN makes these nothing at all, so kernels get away without a semicolon, behind them or in front: a whole statement,
// or the end of one that a number ends (`n = tiles ASSERT(tiles != 0);`), which 0 is added to.
#define VNPU_ASSERT_ANYWHERE(NAME, ...) +(VNPU_ASSERT(NAME, __VA_ARGS__, ), 0);
#define ASSERT(...) VNPU_ASSERT_ANYWHERE("ASSERT", __VA_ARGS__)
#define ASSERT_MSG(...) VNPU_ASSERT_ANYWHERE("ASSERT_MSG", __VA_ARGS__)
#define ASCENDC_ASSERT(...)  // nor do the names in it have to exist
#define ascendc_assert(...) VNPU_ASSERT("ascendc_assert", __VA_ARGS__, )
#define KERNEL_LOG(LEVEL, ...)
#undef assert
#define assert(...) VNPU_ASSERT("assert", __VA_ARGS__, )
