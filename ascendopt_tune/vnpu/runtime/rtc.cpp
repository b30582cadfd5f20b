// The aclrtc C interface over rtc.h.
#include "rtc.h"

#include <cstring>
#include <set>
#include <mutex>

#include "acl/acl_rt_compile.h"

using vnpu_rtc::Program;

namespace {

struct Programs {
  std::mutex mutex;
  std::set<aclrtcProg> live;
};

Programs& programs() {
  static auto* const instance = new Programs;
  return *instance;
}

Program* find(aclrtcProg handle) {
  const std::lock_guard<std::mutex> lock(programs().mutex);
  return programs().live.count(handle) == 1 ? static_cast<Program*>(handle) : nullptr;
}

}  // namespace

aclError aclrtcCreateProg(aclrtcProg* prog, const char* src, const char* name, int header_count, const char** headers,
                          const char** include_names) {
  if (prog == nullptr || src == nullptr || header_count < 0) return ACL_ERROR_RTC_INVALID_INPUT;
  if (header_count > 0 && (headers == nullptr || include_names == nullptr)) return ACL_ERROR_RTC_INVALID_INPUT;
  auto* program = new Program;
  program->source = src;
  program->name = name != nullptr && *name != '\0' ? name : "default_program";
  for (int i = 0; i < header_count; ++i) program->headers.emplace_back(include_names[i], headers[i]);
  *prog = program;
  const std::lock_guard<std::mutex> lock(programs().mutex);
  programs().live.insert(program);
  return ACL_SUCCESS;
}

aclError aclrtcDestroyProg(aclrtcProg* prog) {
  Program* program = prog != nullptr ? find(*prog) : nullptr;
  if (program == nullptr) return ACL_ERROR_RTC_INVALID_PROG;
  {
    const std::lock_guard<std::mutex> lock(programs().mutex);
    programs().live.erase(program);
  }
  delete program;
  *prog = nullptr;
  return ACL_SUCCESS;
}

aclError aclrtcAddNameExpr(aclrtcProg prog, const char* const expression) {
  Program* program = find(prog);
  if (program == nullptr) return ACL_ERROR_RTC_INVALID_PROG;
  if (expression == nullptr || *expression == '\0') return ACL_ERROR_RTC_NAME_EXPR_NOT_VALID;
  if (program->compiled) return ACL_ERROR_RTC_NO_NAME_EXPR_AFTER_COMPILATION;
  for (const auto& known : program->expressions) {
    if (known.function == expression) return ACL_SUCCESS;
  }
  program->expressions.push_back({"expr_" + std::to_string(program->expressions.size()), expression});
  return ACL_SUCCESS;
}

aclError aclrtcCompileProg(aclrtcProg prog, int option_count, const char** options) {
  Program* program = find(prog);
  if (program == nullptr) return ACL_ERROR_RTC_INVALID_PROG;
  if (option_count < 0 || (option_count > 0 && options == nullptr)) return ACL_ERROR_RTC_INVALID_INPUT;
  vnpu_rtc::Options translated;
  std::string error;
  if (!translate_options({options, options + option_count}, &translated, &error)) {
    program->log = error + "\n";
    return ACL_ERROR_RTC_INVALID_OPTION;
  }
  return vnpu_rtc::compile(program, translated);
}

aclError aclrtcGetLoweredName(aclrtcProg prog, const char* expression, const char** lowered_name) {
  Program* program = find(prog);
  if (program == nullptr) return ACL_ERROR_RTC_INVALID_PROG;
  if (expression == nullptr || lowered_name == nullptr) return ACL_ERROR_RTC_INVALID_INPUT;
  if (!program->compiled) return ACL_ERROR_RTC_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  for (const auto& known : program->expressions) {
    if (known.function == expression) {
      *lowered_name = known.name.c_str();
      return ACL_SUCCESS;
    }
  }
  return ACL_ERROR_RTC_NAME_EXPR_NOT_VALID;
}

aclError aclrtcGetBinDataSize(aclrtcProg prog, size_t* size) {
  Program* program = find(prog);
  if (program == nullptr) return ACL_ERROR_RTC_INVALID_PROG;
  if (size == nullptr || !program->compiled) return ACL_ERROR_RTC_INVALID_INPUT;
  *size = program->binary.size();
  return ACL_SUCCESS;
}

aclError aclrtcGetBinData(aclrtcProg prog, char* data) {
  Program* program = find(prog);
  if (program == nullptr) return ACL_ERROR_RTC_INVALID_PROG;
  if (data == nullptr || !program->compiled) return ACL_ERROR_RTC_INVALID_INPUT;
  memcpy(data, program->binary.data(), program->binary.size());
  return ACL_SUCCESS;
}

aclError aclrtcGetCompileLogSize(aclrtcProg prog, size_t* size) {
  Program* program = find(prog);
  if (program == nullptr) return ACL_ERROR_RTC_INVALID_PROG;
  if (size == nullptr) return ACL_ERROR_RTC_INVALID_INPUT;
  *size = program->log.size() + 1;
  return ACL_SUCCESS;
}

aclError aclrtcGetCompileLog(aclrtcProg prog, char* log) {
  Program* program = find(prog);
  if (program == nullptr) return ACL_ERROR_RTC_INVALID_PROG;
  if (log == nullptr) return ACL_ERROR_RTC_INVALID_INPUT;
  memcpy(log, program->log.c_str(), program->log.size() + 1);
  return ACL_SUCCESS;
}
