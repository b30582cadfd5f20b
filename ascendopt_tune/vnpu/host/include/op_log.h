// Log macros of CANN's own operator library, which some tiling sources include; collected like base/alog_pub.h.
// opdev/op_log.h calls its macros the same: where a file includes both, the header that comes last defines them.
#pragma once
#include "base/alog_pub.h"

#undef OP_LOGE
#undef OP_LOGW
#undef OP_LOGI
#undef OP_LOGD
#define OP_LOGE(op_name, ...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_ERROR, __VA_ARGS__)
#define OP_LOGW(op_name, ...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_WARN, __VA_ARGS__)
#define OP_LOGI(op_name, ...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_INFO, __VA_ARGS__)
#define OP_LOGD(op_name, ...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_DEBUG, __VA_ARGS__)
#define VECTOR_INNER_ERR_REPORT_TILIING(op_name, ...) OP_LOGE(op_name, __VA_ARGS__)
