#include "division.h"

#if defined(__x86_64__)
#include <csignal>
#include <cstring>
#include <ucontext.h>
#include <utility>

#include "machine.h"

namespace vnpu {
namespace {

thread_local Reach kernel_code;
thread_local uint8_t result = 0;
struct sigaction others;  // what others do with a division that is no kernel's

// Bytes of an operand behind its ModRM byte (Intel's manual, volume 2, tables 2-2 and 2-3).
size_t operand_bytes(const uint8_t* modrm) {
  const int mod = *modrm >> 6, rm = *modrm & 7;
  if (mod == 3) return 0;
  const bool sib = rm == 4;
  const bool far = mod == 2 || (mod == 0 && (rm == 5 || (sib && (modrm[1] & 7) == 5)));
  return (sib ? 1 : 0) + (far ? 4 : static_cast<size_t>(mod));
}

// `value` in the low `bytes` of a register: writes of 4 bytes clear the others, shorter ones leave them alone.
void put_bytes(greg_t& r, int64_t value, size_t bytes) {
  if (bytes == 4)
    r = static_cast<greg_t>(static_cast<uint32_t>(value));
  else
    std::memcpy(&r, &value, bytes);
}

// Steps over the division at the instruction pointer; false when there is none.
bool step_over(greg_t* r) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(r[REG_RIP]);
  const uint8_t* p = begin;
  const bool shorter = *p == 0x66;
  if (shorter) p++;
  const bool wide = (*p & 0xF8) == 0x48;
  if ((*p & 0xF0) == 0x40) p++;
  const int which = p[1] >> 3 & 7;  // 6: DIV, 7: IDIV
  if ((*p != 0xF6 && *p != 0xF7) || which < 6) return false;
  int64_t value;
  std::memset(&value, result, sizeof(value));
  if (*p == 0xF6) {  // of bytes: quotient in AL, remainder in AH
    put_bytes(r[REG_RAX], value, 2);
  } else {
    const size_t bytes = wide ? 8 : shorter ? 2 : 4;
    put_bytes(r[REG_RAX], value, bytes);
    put_bytes(r[REG_RDX], value, bytes);
  }
  r[REG_RIP] += p + 2 + operand_bytes(p + 1) - begin;
  return true;
}

void hand_on(int signal, siginfo_t* info, void* context) {
  static bool handed_on = false;  // once: whoever came before may lead back here
  if (std::exchange(handed_on, true)) {
    std::signal(SIGFPE, SIG_DFL);  // the division is made again, and ends the process
  } else if ((others.sa_flags & SA_SIGINFO) != 0 && others.sa_sigaction != nullptr) {
    others.sa_sigaction(signal, info, context);
  } else if (others.sa_handler != SIG_DFL && others.sa_handler != SIG_IGN) {
    others.sa_handler(signal);
  }
}

void divided(int signal, siginfo_t* info, void* context) {
  greg_t* r = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (!kernel_code.holds(static_cast<uintptr_t>(r[REG_RIP])) || !step_over(r)) return hand_on(signal, info, context);
  core_unsettled().divided_by_zero = true;
}

}  // namespace

void divisions_go_on() {
  struct sigaction ours = {}, theirs = {};
  if (sigaction(SIGFPE, nullptr, &theirs) != 0 || theirs.sa_sigaction == divided) return;
  others = theirs;
  ours.sa_sigaction = divided;
  ours.sa_flags = SA_SIGINFO;
  sigaction(SIGFPE, &ours, nullptr);
}

void divisions_of(const Reach& code, uint8_t fill) {
  kernel_code = code;
  result = fill;
}

}  // namespace vnpu
#else
namespace vnpu {
void divisions_go_on() {}
void divisions_of(const Reach&, uint8_t) {}
}  // namespace vnpu
#endif
