// Error reports of operators; collected like log records (base/alog_pub.h).
#pragma once
#include "base/alog_pub.h"

#define REPORT_INNER_ERR_MSG(error_code, ...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_ERROR, __VA_ARGS__)
#define REPORT_USER_ERR_MSG(error_code, ...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_ERROR, "%s", error_code)
