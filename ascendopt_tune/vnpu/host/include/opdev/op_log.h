// Log macros of hand-written operator interfaces, which some host sources include; collected like base/alog_pub.h.
#pragma once
#include "base/alog_pub.h"

#define OP_LOGE(code, ...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_ERROR, __VA_ARGS__)
#define OP_LOGW(...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_WARN, __VA_ARGS__)
#define OP_LOGI(...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_INFO, __VA_ARGS__)
#define OP_LOGD(...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_DEBUG, __VA_ARGS__)
#define OP_LOGE_WITHOUT_REPORT(code, ...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_ERROR, __VA_ARGS__)
