// Logging. Warnings and worse are collected and become part of the error when a tiling function refuses a case.
#pragma once
#include <cstdint>

enum { SLOG = 0, TUNE = 31, GE = 45, OP = 63 };
#define DLOG_DEBUG 0x0
#define DLOG_INFO 0x1
#define DLOG_WARN 0x2
#define DLOG_ERROR 0x3
#define DLOG_NULL 0x4
#define DLOG_EVENT 0x10
#define DLOG_TYPE_DEBUG 0
#define DLOG_TYPE_RUN 1
#define MSG_LENGTH 1024

extern "C" {
// 1 when records of this level are kept.
int CheckLogLevel(int module, int level);
int AlogCheckDebugLevel(uint32_t module, int32_t level);
int32_t AlogRecord(uint32_t module, uint32_t type, int32_t level, const char* format, ...)
    __attribute__((format(printf, 4, 5)));
}

// The same under the names of CANN's older logging header; the submodule's name is left out.
#define Dlog(module, level, ...) AlogRecord(module, DLOG_TYPE_DEBUG, level, __VA_ARGS__)
#define DlogSub(module, submodule, level, ...) AlogRecord(module, DLOG_TYPE_DEBUG, level, __VA_ARGS__)
#define dlog_debug(module, ...) Dlog(module, DLOG_DEBUG, __VA_ARGS__)
#define dlog_info(module, ...) Dlog(module, DLOG_INFO, __VA_ARGS__)
#define dlog_warn(module, ...) Dlog(module, DLOG_WARN, __VA_ARGS__)
#define dlog_error(module, ...) Dlog(module, DLOG_ERROR, __VA_ARGS__)
#define dlog_event(module, ...) AlogRecord(module, DLOG_TYPE_RUN, DLOG_INFO, __VA_ARGS__)
