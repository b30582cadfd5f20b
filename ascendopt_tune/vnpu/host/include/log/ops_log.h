// Log macros that operators of CANN's repositories name beside those of log/log.h; collected like them. Some of these
// operators name this header and error/ops_error.h, and their repository doesn't have it.
#pragma once
#include "log/log.h"
#include "op_log.h"

#define OPS_LOG_E(name, ...) VNPU_OP_LOG(DLOG_ERROR, name, __VA_ARGS__)
#define OPS_LOG_E_WITHOUT_REPORT(name, ...) VNPU_OP_LOG(DLOG_ERROR, name, __VA_ARGS__)
#define OPS_LOG_W(name, ...) VNPU_OP_LOG(DLOG_WARN, name, __VA_ARGS__)
#define OPS_LOG_I(name, ...) VNPU_OP_LOG(DLOG_INFO, name, __VA_ARGS__)
#define OPS_LOG_D(name, ...) VNPU_OP_LOG(DLOG_DEBUG, name, __VA_ARGS__)
#define OPS_LOG_FULL(level, name, ...) VNPU_OP_LOG(level, name, __VA_ARGS__)
#define OPS_LOG_E_IF(condition, name, action, ...) OP_CHECK_IF(condition, OPS_LOG_E(name, __VA_ARGS__), action)
#define OPS_LOG_W_IF(condition, name, action, ...) OP_CHECK_IF(condition, OPS_LOG_W(name, __VA_ARGS__), action)
#define OPS_LOG_I_IF(condition, name, action, ...) OP_CHECK_IF(condition, OPS_LOG_I(name, __VA_ARGS__), action)
#define OPS_LOG_D_IF(condition, name, action, ...) OP_CHECK_IF(condition, OPS_LOG_D(name, __VA_ARGS__), action)

// Operators use it without a semicolon, too.
#define OPS_LOG_E_IF_NULL(name, pointer, action)   \
  if ((pointer) == nullptr) {                      \
    OPS_LOG_E(name, "%s is a nullptr.", #pointer); \
    action;                                        \
  }
