// What a kernel's own loads and stores may touch.
//
// Kernels are compiled with the address checks of -fsanitize=kernel-address, every one of them a call
// (runtime/rtc_compile.cpp). A kernel may touch its stack and the data of its binary as it likes. A pointer into local
// or global memory is an access of the scalar unit: it is checked, ordered and costs time like GetValue and SetValue.
// Any other address is the host's, and ends the launch.
#pragma once
#include <cstdint>

#include "machine.h"

namespace vnpu {

// A range of host addresses.
struct Reach {
  uintptr_t begin = 0;
  uintptr_t bytes = 0;
  bool holds(uintptr_t p) const { return p - begin < bytes; }
};

// From now on this thread runs kernel code on `stack`, from the binary that `code` lies in. `checked`: with the
// compiler's checks in it.
void guard_enter(const Reach& stack, const Reach& image, bool checked);
// Whether the compiler's checks end up here; a sanitizer of the process (LD_PRELOAD) answers them instead.
bool guard_answers();
// The segments of the loaded binary that holds `code`.
Reach image_of(const void* code);
// The access that AscendC's own function has just reported, and makes next.
void guard_announce(const void* p);
// A reference that AscendC's own function `api` gives: its loads and stores are reported when they come. False: nobody
// would see them.
bool guard_refer(const void* p, const char* api);
// Stores that were not announced because a load from the same place was: reports them. core() does that by itself.
void guard_settle();
// That `bytes` at `p` are the kernel's own memory (its stack, its binary). Throws KernelError otherwise.
void guard_own(void* p, size_t bytes, const void* pc);

}  // namespace vnpu
