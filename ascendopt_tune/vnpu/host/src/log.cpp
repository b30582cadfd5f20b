// What host programs print and log. It is collected for error messages and never reaches the process's own stdout:
// programs are linked with --wrap for the symbols below.
#include <cstdarg>
#include <cstdio>
#include <ostream>
#include <streambuf>

#include "host.h"
#include "base/alog_pub.h"

namespace vnpu_host {
namespace {

constexpr size_t kMaxLog = 64 * 1024;  // bytes; a program that logs in a loop must not eat the memory

void Append(const char* text, size_t length) {
  std::string& log = Log();
  if (log.size() < kMaxLog) log.append(text, length);
}

int AppendFormatted(const char* format, va_list arguments, bool new_line) {
  char buffer[4096];
  int length = std::vsnprintf(buffer, sizeof(buffer), format, arguments);
  if (length < 0) return length;
  Append(buffer, static_cast<size_t>(length) < sizeof(buffer) ? static_cast<size_t>(length) : sizeof(buffer) - 1);
  if (new_line) Append("\n", 1);
  return length;
}

class LogBuffer : public std::streambuf {
 protected:
  int overflow(int c) override {
    if (c != traits_type::eof()) {
      const char character = static_cast<char>(c);
      Append(&character, 1);
    }
    return traits_type::not_eof(c);
  }
  std::streamsize xsputn(const char* text, std::streamsize length) override {
    Append(text, static_cast<size_t>(length));
    return length;
  }
};

LogBuffer log_buffer;

}  // namespace

std::string& Log() {
  thread_local std::string log;
  return log;
}

void ClearLog() { Log().clear(); }

}  // namespace vnpu_host

#define VNPU_WRAP __attribute__((visibility("default")))

// std::cout of host programs.
extern VNPU_WRAP std::ostream vnpu_host_cout __asm__("__wrap__ZSt4cout");
std::ostream vnpu_host_cout(&vnpu_host::log_buffer);

extern "C" {

VNPU_WRAP int __wrap_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vnpu_host::AppendFormatted(format, arguments, false);
  va_end(arguments);
  return length;
}

VNPU_WRAP int __wrap_vprintf(const char* format, va_list arguments) {
  return vnpu_host::AppendFormatted(format, arguments, false);
}

VNPU_WRAP int __wrap_puts(const char* text) {
  vnpu_host::Log() += text;
  vnpu_host::Log() += '\n';
  return 1;
}

VNPU_WRAP int __wrap_putchar(int c) {
  const char character = static_cast<char>(c);
  vnpu_host::Append(&character, 1);
  return c;
}

int CheckLogLevel(int, int level) { return level >= DLOG_WARN && level <= DLOG_ERROR ? 1 : 0; }

int AlogCheckDebugLevel(uint32_t, int32_t level) { return CheckLogLevel(0, level); }

int32_t AlogRecord(uint32_t, uint32_t, int32_t level, const char* format, ...) {
  if (CheckLogLevel(0, level) == 0) return 0;
  va_list arguments;
  va_start(arguments, format);
  vnpu_host::AppendFormatted(format, arguments, true);
  va_end(arguments);
  return 0;
}
}

#undef VNPU_WRAP
