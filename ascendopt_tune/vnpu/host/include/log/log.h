// Log macros of CANN's open operator repositories (their package header log/log.h); collected like base/alog_pub.h.
#pragma once
#include <string>

#include "base/alog_pub.h"
#include "base/err_msg.h"
#include "runtime2_util.h"
#include "util/shape_util.h"

// Arguments are not looked at by the format: std::string comes there, too, by the repositories' own macros.
#define OpLogSub(module, level, name, ...) AlogRecord(module, DLOG_TYPE_DEBUG, level, __VA_ARGS__)
#define OP_LOGE_WITHOUT_REPORT(name, ...) OP_LOGE(name, __VA_ARGS__)

#define OP_CHECK_IF(condition, log, action) \
  do {                                      \
    if (condition) {                        \
      log;                                  \
      action;                               \
    }                                       \
  } while (0)

#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer) OPS_CHECK_NULL_WITH_CONTEXT(context, pointer)

// What is wrong with a parameter: its name, what it is, and what it should be or why.
#define VNPU_OP_LOGE_INVALID(what, parameter, given, wanted)                                                  \
  AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_ERROR, "the %s of %s is %s: %s", what, std::string(parameter).c_str(), \
             std::string(given).c_str(), std::string(wanted).c_str())
#define OP_LOGE_WITH_INVALID_INPUT(name, parameter) \
  AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_ERROR, "the input %s is invalid", std::string(parameter).c_str())
#define OP_LOGE_FOR_INVALID_DTYPE(n, p, g, w) VNPU_OP_LOGE_INVALID("dtype", p, g, w)
#define OP_LOGE_FOR_INVALID_DTYPE_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("dtype", p, g, w)
#define OP_LOGE_FOR_INVALID_DTYPES_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("dtypes", p, g, w)
#define OP_LOGE_FOR_INVALID_FORMAT(n, p, g, w) VNPU_OP_LOGE_INVALID("format", p, g, w)
#define OP_LOGE_FOR_INVALID_FORMATS_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("formats", p, g, w)
#define OP_LOGE_FOR_INVALID_SHAPE(n, p, g, w) VNPU_OP_LOGE_INVALID("shape", p, g, w)
#define OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("shape", p, g, w)
#define OP_LOGE_FOR_INVALID_SHAPES_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("shapes", p, g, w)
#define OP_LOGE_FOR_INVALID_SHAPEDIM(n, p, g, w) VNPU_OP_LOGE_INVALID("number of dimensions", p, g, w)
#define OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("number of dimensions", p, g, w)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("numbers of dimensions", p, g, w)
#define OP_LOGE_FOR_INVALID_SHAPESIZE(n, p, g, w) VNPU_OP_LOGE_INVALID("size", p, g, w)
#define OP_LOGE_FOR_INVALID_SHAPESIZE_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("size", p, g, w)
#define OP_LOGE_FOR_INVALID_SHAPESIZES_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("sizes", p, g, w)
#define OP_LOGE_FOR_INVALID_VALUE(n, p, g, w) VNPU_OP_LOGE_INVALID("value", p, g, w)
#define OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("value", p, g, w)
#define OP_LOGE_FOR_INVALID_VALUES_WITH_REASON(n, p, g, w) VNPU_OP_LOGE_INVALID("values", p, g, w)
