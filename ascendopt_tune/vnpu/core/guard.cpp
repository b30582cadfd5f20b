#include "guard.h"
#include "words.h"

#include <dlfcn.h>
#include <link.h>

#include <unwind.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace vnpu {
namespace {

thread_local Reach stack_reach, image_reach;
thread_local uintptr_t announced = 0;

// The compiler leaves out the check of a store where a load from the same address has just been checked. So device
// memory that was loaded from is looked at again at the next call of the machine: what changed was stored.
struct Loaded {
  uintptr_t begin;
  size_t bytes;
  size_t kept;  // where its bytes begin in `loaded_bytes`
  const void* pc;
};
thread_local std::vector<Loaded> loads;
thread_local std::vector<uint8_t> loaded_bytes;
constexpr size_t kKeptBytes = 4096;

constexpr char kStore[] = "a store through a pointer", kLoad[] = "a load through a pointer";

// The element that AscendC's own function gave a reference to last, and what that function is called.
struct Referred {
  uintptr_t at = 0;
  const char* api = nullptr;
};
thread_local Referred referred;
thread_local bool seen = false;

// Kernel code can't be unwound from here (its compiler takes the checks for functions that throw nothing), so the core
// is left where it stands.
[[gnu::noinline]] void settle_or_abandon() {
  try {
    guard_settle();
  } catch (const KernelError& error) {
    abandon(error);
  }
}

void remember(uintptr_t p, size_t bytes, const void* pc) {
  if (loaded_bytes.size() > kKeptBytes) settle_or_abandon();
  const auto* from = reinterpret_cast<const uint8_t*>(p);
  loads.push_back({p, bytes, loaded_bytes.size(), pc});
  set_unsettled(true);
  loaded_bytes.insert(loaded_bytes.end(), from, from + bytes);
}

void forget(uintptr_t p, size_t bytes) {
  for (Loaded& l : loads)
    if (p < l.begin + l.bytes && l.begin < p + bytes) l.bytes = 0;
}

// A call returns to where its frame says. Frames are linked, because kernels are compiled with frame pointers; above
// the kernel's first one the chain leads out of its stack, or nowhere.
bool holds_return_address(uintptr_t p, size_t bytes, const void* frame) {
  constexpr int kDepth = 64;
  auto at = reinterpret_cast<uintptr_t>(frame);
  for (int i = 0; i < kDepth && at % sizeof(void*) == 0 && stack_reach.holds(at); ++i) {
    if (p < at + 2 * sizeof(void*) && at < p + bytes) return true;
    const uintptr_t next = *reinterpret_cast<const uintptr_t*>(at);
    if (next <= at) return false;
    at = next;
  }
  return false;
}

[[gnu::noinline]] void refuse_return_address(const void* pc) {
  abandon(KernelError(KernelError::kOutOfBounds, "the kernel writes where a function's return address is kept", kStore,
                      pc));
}

[[gnu::noinline]] void touch_device(uintptr_t p, size_t bytes, bool write, const void* pc) {
  Core& c = core_unsettled();
  const auto within = [&](const void* member) { return p - reinterpret_cast<uintptr_t>(member) < sizeof(void*); };
  if (within(&c.user_pipe) || within(&c.system_workspace) || within(&c.pad.set) || within(&c.pad.value)) return;
  const uintptr_t end = p + bytes;
  const char* api = p == referred.at ? referred.api : write ? kStore : kLoad;
  const size_t all = bytes;
  const uintptr_t begin = p;
  try {
    if (write) forget(begin, all);
    // The scalar unit moves 8 bytes at most.
    for (; c.is_local(reinterpret_cast<const void*>(p)) || gm_find(p) != nullptr; p += 8) {
      const size_t left = end - p;
      c.scalar_access(reinterpret_cast<const void*>(p), static_cast<uint32_t>(left < 8 ? left : 8), write, api, pc);
      if (left > 8) continue;
      if (!write) remember(begin, all, pc);
      return;
    }
    throw KernelError(KernelError::kOutOfBounds,
                      std::string("the kernel ") + (write ? "writes" : "reads") + " " + std::to_string(end - p) +
                          " bytes through a pointer to memory that is neither the device's nor the kernel's own",
                      api, pc);
  } catch (const KernelError& error) {
    abandon(error);
  }
}

// `frame`: of the kernel's function.
inline void touch(uintptr_t p, size_t bytes, bool write, const void* pc, const void* frame) {
  if (stack_reach.holds(p)) {
    if (write && holds_return_address(p, bytes, frame)) refuse_return_address(pc);
    return;
  }
  if (image_reach.holds(p)) return;
  if (p == announced) {
    announced = 0;
    if (!write) remember(p, bytes, pc);
    return;
  }
  if (stack_reach.bytes != 0) touch_device(p, bytes, write, pc);
}

// A block that begins in the kernel's own memory ends there, too.
void touch_block(const void* p, size_t bytes, bool write, const void* pc, const void* frame) {
  const auto begin = reinterpret_cast<uintptr_t>(p);
  if (bytes == 0) return;
  for (const Reach& reach : {stack_reach, image_reach})
    if (reach.holds(begin) && bytes > reach.bytes - (begin - reach.begin)) return touch_device(begin, bytes, write, pc);
  touch(begin, bytes, write, pc, frame);
}

}  // namespace

void guard_enter(const Reach& stack, const Reach& image, bool checked) {
  stack_reach = stack;
  image_reach = image;
  announced = 0;
  referred = {};
  static const bool answers = guard_answers();
  seen = checked && answers;
  loads.clear();
  loaded_bytes.clear();
  set_unsettled(false);
}

void guard_settle() {
  const std::vector<Loaded> before = std::move(loads);
  const std::vector<uint8_t> bytes = std::move(loaded_bytes);
  loads.clear();
  loaded_bytes.clear();
  set_unsettled(false);
  Core& c = core_unsettled();
  for (const Loaded& l : before) {
    void* now = reinterpret_cast<void*>(l.begin);
    if (memcmp(now, bytes.data() + l.kept, l.bytes) == 0) continue;
    if (c.detached) memcpy(now, bytes.data() + l.kept, l.bytes);  // the core will run again, in its turn
    c.scalar_access(now, static_cast<uint32_t>(std::min<size_t>(l.bytes, 8)), true, kStore, l.pc);
  }
}

void guard_own(void* p, size_t bytes, const void* pc) {
  const auto begin = reinterpret_cast<uintptr_t>(p);
  if (stack_reach.bytes == 0) return;
  for (const Reach& reach : {stack_reach, image_reach})
    if (reach.holds(begin) && bytes <= reach.bytes - (begin - reach.begin)) return;
  throw KernelError(KernelError::kOutOfBounds, "tiling data goes to memory that is not the kernel's own",
                    kWords.load_tiling, pc);
}

void guard_announce(const void* p) { announced = reinterpret_cast<uintptr_t>(p); }

bool guard_refer(const void* p, const char* api) {
  if (!seen) return false;
  referred = {reinterpret_cast<uintptr_t>(p), api};
  return true;
}

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

// The frame of the kernel's function: our own is linked to it.
#define VNPU_FRAME (*static_cast<void**>(__builtin_frame_address(0)))
#define VNPU_CHECK(SIZE)                                                                              \
  extern "C" void __asan_load##SIZE##_noabort(const void* p) {                                        \
    vnpu::touch(reinterpret_cast<uintptr_t>(p), SIZE, false, __builtin_return_address(0), nullptr);   \
  }                                                                                                   \
  extern "C" void __asan_store##SIZE##_noabort(const void* p) {                                       \
    vnpu::touch(reinterpret_cast<uintptr_t>(p), SIZE, true, __builtin_return_address(0), VNPU_FRAME); \
  }
VNPU_CHECK(1)
VNPU_CHECK(2)
VNPU_CHECK(4)
VNPU_CHECK(8)
VNPU_CHECK(16)
#undef VNPU_CHECK
#define VNPU_READS(p, n) vnpu::touch_block(p, n, false, __builtin_return_address(0), nullptr)
#define VNPU_WRITES(p, n) vnpu::touch_block(p, n, true, __builtin_return_address(0), VNPU_FRAME)
extern "C" {
void __asan_loadN_noabort(const void* p, size_t n) { VNPU_READS(p, n); }
void __asan_storeN_noabort(const void* p, size_t n) { VNPU_WRITES(p, n); }
void __asan_handle_no_return() {}

// Kernels are linked with --wrap for what follows, so that a pointer to one of them is checked as well.
void* __wrap_memcpy(void* to, const void* from, size_t n) {
  VNPU_READS(from, n);
  VNPU_WRITES(to, n);
  return memcpy(to, from, n);
}
void* __wrap_memmove(void* to, const void* from, size_t n) {
  VNPU_READS(from, n);
  VNPU_WRITES(to, n);
  return memmove(to, from, n);
}
void* __wrap_memset(void* to, int value, size_t n) {
  VNPU_WRITES(to, n);
  return memset(to, value, n);
}

// libm's functions that store.
double __wrap_modf(double x, double* whole) {
  VNPU_WRITES(whole, sizeof(*whole));
  return modf(x, whole);
}
float __wrap_modff(float x, float* whole) {
  VNPU_WRITES(whole, sizeof(*whole));
  return modff(x, whole);
}
double __wrap_frexp(double x, int* exponent) {
  VNPU_WRITES(exponent, sizeof(*exponent));
  return frexp(x, exponent);
}
float __wrap_frexpf(float x, int* exponent) {
  VNPU_WRITES(exponent, sizeof(*exponent));
  return frexpf(x, exponent);
}
void __wrap_sincos(double x, double* sine, double* cosine) {
  VNPU_WRITES(sine, sizeof(*sine));
  VNPU_WRITES(cosine, sizeof(*cosine));
  sincos(x, sine, cosine);
}
void __wrap_sincosf(float x, float* sine, float* cosine) {
  VNPU_WRITES(sine, sizeof(*sine));
  VNPU_WRITES(cosine, sizeof(*cosine));
  sincosf(x, sine, cosine);
}

// Destructors of a kernel that an error passes through end with this. What is handed on was thrown by the machine and
// lies in no memory that a kernel can write; an exception of the kernel's own making may name any function to call.
void __wrap__Unwind_Resume(_Unwind_Exception* exception) {
  const auto at = reinterpret_cast<uintptr_t>(exception);
  const vnpu::Core& c = vnpu::core_unsettled();
  if (vnpu::stack_reach.holds(at) || vnpu::image_reach.holds(at) || c.is_local(exception) ||
      vnpu::gm_find(at) != nullptr)
    vnpu::abandon(vnpu::KernelError(vnpu::KernelError::kMisuse, "the kernel throws an exception of its own making",
                                    "_Unwind_Resume", __builtin_return_address(0)));
  _Unwind_Resume(exception);
}
}

#undef VNPU_FRAME
#undef VNPU_READS
#undef VNPU_WRITES
