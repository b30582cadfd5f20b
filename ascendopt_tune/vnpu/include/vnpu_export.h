// How a kernel becomes callable: the marker that __global__ leaves in the source and the macros of its entry.
//
// The run-time compiler finds every function that carries VNPU_GLOBAL_MARK in the preprocessed source and appends
// VNPU_EXPORT_KERNEL(name, function) for it; the loader finds the symbol `__vnpu_kernel_<name>`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "vnpu/kernel_info.h"

#define VNPU_GLOBAL_MARK __attribute__((noinline, used, visibility("hidden")))
#define __global__ VNPU_GLOBAL_MARK
// The compiler driver always defines VNPU_AUTO_SYNC (0 or 1, from --cce-auto-sync) and TILING_KEY_VAR (the key this
// translation unit is compiled for). They have no default here: testing them would tie the precompiled header to them.
#define TILING_KEY_IS(k) (TILING_KEY_VAR == (k))
#define TILING_KEY_LIST(k, other) (TILING_KEY_VAR == (k) || TILING_KEY_VAR == (other))
// The run-time compiler sees the mark, and makes the pass for the kind of core that it names.
#define VNPU_TASK_TYPE_MARK(key, type)
#define VNPU_TASK_TYPE(key, type) \
  VNPU_TASK_TYPE_MARK(key, type)  \
  static_assert(AscendC::detail::type_of_2201(type), "no type of a kernel of architecture 2201: " #type)
// What combinations of template arguments ASCENDC_TPL_SEL has, and on which cores each runs: for that compiler, too.
#define VNPU_TPL_SELECTED(...)
#define KERNEL_TASK_TYPE(key, type) VNPU_TASK_TYPE(key, type)
#define KERNEL_TASK_TYPE_DEFAULT(type) VNPU_TASK_TYPE(default, type)

enum KernelMetaType {
  KERNEL_TYPE_AIV_ONLY,
  KERNEL_TYPE_AIC_ONLY,
  KERNEL_TYPE_MIX_AIV_1_0,
  KERNEL_TYPE_MIX_AIC_1_0,
  KERNEL_TYPE_MIX_AIC_1_1,
  KERNEL_TYPE_MIX_AIC_1_2,
  KERNEL_TYPE_AICORE,
  KERNEL_TYPE_VECTORCORE,
  KERNEL_TYPE_MIX_AICORE,
  KERNEL_TYPE_MIX_VECTOR_CORE,
  KERNEL_TYPE_MAX,
};
namespace AscendC::detail {
// MIX_VECTOR_CORE is a type of other chips; where it doesn't exist, the kernel's type is what its code is: vector only.
constexpr bool type_of_2201(KernelMetaType t) {
  return t <= KERNEL_TYPE_MIX_AIC_1_2 || t == KERNEL_TYPE_MIX_VECTOR_CORE;
}
}  // namespace AscendC::detail

namespace vnpu {

template <auto function, typename F = decltype(function)>
struct Entry;
template <auto function, typename... P>
struct Entry<function, void (*)(P...)> {
  static constexpr uint32_t count = sizeof...(P);
  static inline const uint32_t sizes[sizeof...(P) + 1] = {static_cast<uint32_t>(sizeof(P))..., 0};
  // What is passed lies in the host's memory, which kernels may not touch (core/guard.h).
  [[gnu::no_sanitize("kernel-address")]] static void call(void** args) {
    call_with(args, std::make_index_sequence<sizeof...(P)>{});
  }

 private:
  template <size_t... I>
  [[gnu::no_sanitize("kernel-address"), gnu::always_inline]] static void call_with([[maybe_unused]] void** args,
                                                                                   std::index_sequence<I...>) {
    function(*static_cast<std::remove_cv_t<std::remove_reference_t<P>>*>(args[I])...);
  }
};

}  // namespace vnpu

// Whether every load and store is a call: of the host's compilers only g++ says so, and has it (build/toolkit.py).
#ifdef __SANITIZE_ADDRESS__
#define VNPU_GUARDED true
#else
#define VNPU_GUARDED false
#endif
#define VNPU_EXPORT(NAME, FUNCTION, CORES, CUBE_ENTRY)                                           \
  extern "C" __attribute__((visibility("default"))) const vnpu::KernelInfo __vnpu_kernel_##NAME; \
  const vnpu::KernelInfo __vnpu_kernel_##NAME = {#NAME,                                          \
                                                 &vnpu::Entry<(FUNCTION)>::call,                 \
                                                 vnpu::Entry<(FUNCTION)>::count,                 \
                                                 vnpu::Entry<(FUNCTION)>::sizes,                 \
                                                 VNPU_AUTO_SYNC != 0,                            \
                                                 VNPU_GUARDED,                                   \
                                                 CORES,                                          \
                                                 CUBE_ENTRY};
// Of a kernel for one kind of core, in the pass for that kind.
#define VNPU_EXPORT_KERNEL(NAME, FUNCTION) VNPU_EXPORT(NAME, FUNCTION, VNPU_CUBE_PASS ? 1 : 0, nullptr)
// Of a mixed kernel: CORES as in KernelInfo. The pass for vector cores has what the loader finds; it refers to the pass
// for cube cores by the one name that both know (runtime/rtc_compile.cpp).
#define VNPU_CUBE_ENTRY(NAME) \
  extern "C" __attribute__((visibility("default"))) const vnpu::EntryPoint __vnpu_cube_entry_##NAME
#define VNPU_EXPORT_MIXED(NAME, FUNCTION, CORES) \
  VNPU_CUBE_ENTRY(NAME);                         \
  VNPU_EXPORT(NAME, FUNCTION, CORES, &__vnpu_cube_entry_##NAME)
#define VNPU_EXPORT_CUBE_PASS(NAME, FUNCTION) \
  VNPU_CUBE_ENTRY(NAME);                      \
  const vnpu::EntryPoint __vnpu_cube_entry_##NAME = &vnpu::Entry<(FUNCTION)>::call;
