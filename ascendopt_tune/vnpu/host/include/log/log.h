// Log macros of CANN's open operator repositories (their package header log/log.h); collected like base/alog_pub.h.
#pragma once
#include <unistd.h>  // as CANN's own, which tells the thread

#include <sstream>
#include <string>

#include "base/alog_pub.h"
#include "base/err_msg.h"
#include "runtime2_util.h"
#include "util/shape_util.h"

// Arguments are not looked at by the format: std::string comes there, too, by the repositories' own macros.
#define OpLogSub(module, level, name, ...) AlogRecord(module, DLOG_TYPE_DEBUG, level, __VA_ARGS__)
#undef OP_LOGE_WITHOUT_REPORT
#define OP_LOGE_WITHOUT_REPORT(name, ...) OP_LOGE(name, __VA_ARGS__)

#define OP_CHECK_IF(condition, log, action) \
  do {                                      \
    if (condition) {                        \
      log;                                  \
      action;                               \
    }                                       \
  } while (0)

#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer)                   \
  do {                                                                 \
    if ((pointer) == nullptr) {                                        \
      OP_LOGE((context)->GetNodeName(), "%s is a nullptr.", #pointer); \
      return ge::GRAPH_FAILED;                                         \
    }                                                                  \
  } while (0)

namespace vnpu_host {

template <typename... Texts>
void log_invalid(const char* what, const Texts&... texts) {
  std::ostringstream all;
  const char* between = "";
  ((all << between << texts, between = ", "), ...);
  AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_ERROR, "invalid %s: %s", what, all.str().c_str());
}

}  // namespace vnpu_host

namespace Ops {
namespace Base {

// Texts of log records, which the collected ones leave out.
inline const char* GetSafeStr(const char* text) { return text == nullptr ? "" : text; }
inline const char* GetSafeStr(const std::string& text) { return text.c_str(); }
inline const char* GetOpInfo(const char* name) { return name; }
inline std::string GetOpInfo(const std::string& name) { return name; }
template <typename Context>
auto GetOpInfo(const Context* context) -> decltype(context->GetNodeName()) {
  return context == nullptr ? "" : context->GetNodeName();
}

}  // namespace Base
}  // namespace Ops

// What is wrong with a parameter: names and values, and what they should be or why.
#define VNPU_OP_LOGE_INVALID(what, name, ...) vnpu_host::log_invalid(what, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT(n, ...) VNPU_OP_LOGE_INVALID("input", n, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_FORMAT(n, ...) VNPU_OP_LOGE_INVALID("format", n, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_DTYPE(n, ...) VNPU_OP_LOGE_INVALID("dtype", n, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR(n, ...) VNPU_OP_LOGE_INVALID("attribute", n, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR_SIZE(n, ...) VNPU_OP_LOGE_INVALID("attribute's size", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_ARGUMENT_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("argument", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG(n, ...) VNPU_OP_LOGE_INVALID("configuration", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("configuration", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIGS_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("configurations", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE(n, ...) VNPU_OP_LOGE_INVALID("dtype", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("dtype", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPES_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("dtypes", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT(n, ...) VNPU_OP_LOGE_INVALID("format", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("format", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMATS_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("formats", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE(n, ...) VNPU_OP_LOGE_INVALID("list's size", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE(n, ...) VNPU_OP_LOGE_INVALID("shape", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("shape", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPES_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("shapes", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM(n, ...) VNPU_OP_LOGE_INVALID("number of dimensions", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("number of dimensions", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("numbers of dimensions", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE(n, ...) VNPU_OP_LOGE_INVALID("size", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("size", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZES_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("sizes", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_STRIDE(n, ...) VNPU_OP_LOGE_INVALID("stride", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUM(n, ...) VNPU_OP_LOGE_INVALID("number of tensors", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUM_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("number of tensors", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUMS_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("numbers of tensors", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE(n, ...) VNPU_OP_LOGE_INVALID("value", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("value", n, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUES_WITH_REASON(n, ...) VNPU_OP_LOGE_INVALID("values", n, __VA_ARGS__)

#define D_OP_LOGD(name, ...) OP_LOGD(name, __VA_ARGS__)
#define D_OP_LOGI(name, ...) OP_LOGI(name, __VA_ARGS__)
#define D_OP_LOGW(name, ...) OP_LOGW(name, __VA_ARGS__)
#define D_OP_LOGE(name, ...) OP_LOGE(name, __VA_ARGS__)

#ifndef likely
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#endif
