// Log macros of CANN's own operator library, which some tiling sources include; collected like base/alog_pub.h.
// opdev/op_log.h calls its macros the same: where a file includes both, the header that comes last defines them.
#pragma once
#include "base/alog_pub.h"

#undef OP_LOGE
#undef OP_LOGW
#undef OP_LOGI
#undef OP_LOGD
#define OP_LOGE(...) VNPU_OP_LOG(DLOG_ERROR, __VA_ARGS__)
#define OP_LOGW(...) VNPU_OP_LOG(DLOG_WARN, __VA_ARGS__)
#define OP_LOGI(...) VNPU_OP_LOG(DLOG_INFO, __VA_ARGS__)
#define OP_LOGD(...) VNPU_OP_LOG(DLOG_DEBUG, __VA_ARGS__)
#define VECTOR_INNER_ERR_REPORT_TILIING(op_name, ...) OP_LOGE(op_name, __VA_ARGS__)

// A name alone is a message without text.
#define VNPU_OP_LOG(level, name, ...) \
  AlogRecord(OP, DLOG_TYPE_DEBUG, level, VNPU_TEXT_##__VA_OPT__(IS)(name, __VA_ARGS__))
#define VNPU_TEXT_(name, ...) "%s", vnpu_host::text_of(name)
#define VNPU_TEXT_IS(name, ...) __VA_ARGS__

namespace vnpu_host {

inline const char* text_of(const char* text) { return text == nullptr ? "" : text; }
template <typename Context>
auto text_of(const Context* context) -> decltype(context->GetNodeName()) {
  return context == nullptr ? "" : context->GetNodeName();
}

}  // namespace vnpu_host
