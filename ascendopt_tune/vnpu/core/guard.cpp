#include "guard.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace vnpu {
namespace {

thread_local Reach stack_reach, image_reach;
thread_local uintptr_t announced = 0;

// Kernel code can't be unwound from here (its compiler takes the checks for functions that throw nothing), so the core
// is left where it stands.
[[gnu::noinline]] void touch_device(uintptr_t p, size_t bytes, bool write, const void* pc) {
  Core& c = core();
  const auto within = [&](const void* member) { return p - reinterpret_cast<uintptr_t>(member) < sizeof(void*); };
  if (within(&c.user_pipe) || within(&c.system_workspace)) return;
  const uintptr_t end = p + bytes;
  const char* api = write ? "a store through a pointer" : "a load through a pointer";
  try {
    // The scalar unit moves 8 bytes at most.
    for (; c.is_local(reinterpret_cast<const void*>(p)) || gm_find(p) != nullptr; p += 8) {
      const size_t left = end - p;
      c.scalar_access(reinterpret_cast<const void*>(p), static_cast<uint32_t>(left < 8 ? left : 8), write, api, pc);
      if (left <= 8) return;
    }
    throw KernelError(KernelError::kOutOfBounds,
                      std::string("the kernel ") + (write ? "writes" : "reads") + " " + std::to_string(end - p) +
                          " bytes through a pointer to memory that is neither the device's nor the kernel's own",
                      api, pc);
  } catch (const KernelError& error) {
    abandon(error);
  }
}

inline void touch(uintptr_t p, size_t bytes, bool write, const void* pc) {
  if (stack_reach.holds(p) || image_reach.holds(p)) return;
  if (p == announced) {
    announced = 0;
    return;
  }
  if (stack_reach.bytes != 0) touch_device(p, bytes, write, pc);
}

// A block that begins in the kernel's own memory ends there, too.
void touch_block(const void* p, size_t bytes, bool write, const void* pc) {
  const auto begin = reinterpret_cast<uintptr_t>(p);
  if (bytes == 0) return;
  for (const Reach& reach : {stack_reach, image_reach})
    if (reach.holds(begin) && bytes <= reach.bytes - (begin - reach.begin)) return;
  touch(begin, bytes, write, pc);
}

}  // namespace

void guard_enter(const Reach& stack, const Reach& image) {
  stack_reach = stack;
  image_reach = image;
  announced = 0;
}

void guard_announce(const void* p) { announced = reinterpret_cast<uintptr_t>(p); }

bool guard_answers() {
  const void* answering = dlsym(RTLD_DEFAULT, "__asan_store4_noabort");  // none: only kernels see what is here
  Dl_info there, here;
  return answering == nullptr ||
         (dladdr(answering, &there) != 0 && dladdr(reinterpret_cast<const void*>(&guard_enter), &here) != 0 &&
          there.dli_fbase == here.dli_fbase);
}

Reach image_of(const void* code) {
  struct Search {
    uintptr_t code;
    Reach found;
  } search{reinterpret_cast<uintptr_t>(code), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        uintptr_t begin = ~uintptr_t{0}, end = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) & segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const uintptr_t at = info->dlpi_addr + segment.p_vaddr;
          begin = std::min(begin, at);
          end = std::max(end, at + segment.p_memsz);
        }
        const Reach reach{begin, end - begin};
        if (end == 0 || !reach.holds(s.code)) return 0;
        s.found = reach;
        return 1;
      },
      &search);
  return search.found;
}

}  // namespace vnpu

// ---- what the compiler calls ----

#define VNPU_CHECK(SIZE)                                                                   \
  extern "C" void __asan_load##SIZE##_noabort(const void* p) {                             \
    vnpu::touch(reinterpret_cast<uintptr_t>(p), SIZE, false, __builtin_return_address(0)); \
  }                                                                                        \
  extern "C" void __asan_store##SIZE##_noabort(const void* p) {                            \
    vnpu::touch(reinterpret_cast<uintptr_t>(p), SIZE, true, __builtin_return_address(0));  \
  }
VNPU_CHECK(1)
VNPU_CHECK(2)
VNPU_CHECK(4)
VNPU_CHECK(8)
VNPU_CHECK(16)
#undef VNPU_CHECK
extern "C" {
void __asan_loadN_noabort(const void* p, size_t n) { vnpu::touch_block(p, n, false, __builtin_return_address(0)); }
void __asan_storeN_noabort(const void* p, size_t n) { vnpu::touch_block(p, n, true, __builtin_return_address(0)); }
void __asan_handle_no_return() {}

// Kernels are linked with --wrap for these three, so that a pointer to one of them is checked as well.
void* __wrap_memcpy(void* to, const void* from, size_t n) {
  vnpu::touch_block(from, n, false, __builtin_return_address(0));
  vnpu::touch_block(to, n, true, __builtin_return_address(0));
  return memcpy(to, from, n);
}
void* __wrap_memmove(void* to, const void* from, size_t n) {
  vnpu::touch_block(from, n, false, __builtin_return_address(0));
  vnpu::touch_block(to, n, true, __builtin_return_address(0));
  return memmove(to, from, n);
}
void* __wrap_memset(void* to, int value, size_t n) {
  vnpu::touch_block(to, n, true, __builtin_return_address(0));
  return memset(to, value, n);
}
}
