// Error macros that operators of CANN's repositories name; collected like log records.
#pragma once
#include "log/ops_log.h"

#define OPS_REPORT_VECTOR_INNER_ERR(name, ...) OPS_LOG_E(name, __VA_ARGS__)
#define OPS_REPORT_CUBE_INNER_ERR(name, ...) OPS_LOG_E(name, __VA_ARGS__)
#define OPS_ERR_IF(condition, log, action) OP_CHECK_IF(condition, log, action)
