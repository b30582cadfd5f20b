// Error texts: one per thread, handed out once (aclGetRecentErrMsg gets and clears).
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "acl/acl_rt.h"
#include "state.h"

namespace vnpu_acl {
namespace {
thread_local std::string recent_message;
thread_local std::string handed_out;
thread_local int last_error = ACL_SUCCESS;
}  // namespace

int fail_text(int code, std::string message) {
  recent_message = "virtual NPU: " + std::move(message);
  last_error = code;
  return code;
}

int fail(int code, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return fail_text(code, text);
}

}  // namespace vnpu_acl

using namespace vnpu_acl;

const char* aclGetRecentErrMsg() {
  handed_out = std::exchange(recent_message, {});
  return handed_out.c_str();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel) { return last_error; }

aclError aclrtGetLastError(aclrtLastErrLevel) { return std::exchange(last_error, ACL_SUCCESS); }

// CANN's own switches: logs go to its files unless ASCEND_SLOG_PRINT_TO_STDOUT=1; ASCEND_GLOBAL_LOG_LEVEL is the lowest
// level, errors by default. There are no log files here, and stderr stands for the terminal.
void aclAppLog(aclLogLevel level, const char* func, const char* file, uint32_t line, const char* format, ...) {
  const char* const print = getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
  const char* const lowest = getenv("ASCEND_GLOBAL_LOG_LEVEL");
  if (print == nullptr || strcmp(print, "1") != 0) return;
  if (level < (lowest != nullptr ? atoi(lowest) : ACL_ERROR)) return;
  static const char* const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(stderr, "[%s] %s:%u %s: %s\n", names[level & 3], file, line, func, text);
}
