// The bounded string and memory functions that operator sources call.
#pragma once
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

using errno_t = int;
#ifndef EOK
#define EOK 0
#endif

inline errno_t memset_s(void* destination, size_t capacity, int value, size_t count) {
  if (destination == nullptr || count > capacity) return ERANGE;
  std::memset(destination, value, count);
  return EOK;
}

inline errno_t memcpy_s(void* destination, size_t capacity, const void* source, size_t count) {
  if (destination == nullptr || source == nullptr || count > capacity) return ERANGE;
  std::memcpy(destination, source, count);
  return EOK;
}

inline errno_t strcpy_s(char* destination, size_t capacity, const char* source) {
  return memcpy_s(destination, capacity, source, std::strlen(source) + 1);
}

inline errno_t strcat_s(char* destination, size_t capacity, const char* source) {
  const size_t used = std::strlen(destination);
  return used > capacity ? ERANGE : strcpy_s(destination + used, capacity - used, source);
}

// Characters written, -1 when they don't fit.
__attribute__((format(printf, 4, 0))) inline int vsnprintf_s(char* destination, size_t capacity, size_t count,
                                                             const char* format, va_list arguments) {
  const size_t room = count < capacity ? count + 1 : capacity;
  const int written = std::vsnprintf(destination, room, format, arguments);
  return written < 0 || static_cast<size_t>(written) >= room ? -1 : written;
}

__attribute__((format(printf, 4, 5))) inline int snprintf_s(char* destination, size_t capacity, size_t count,
                                                            const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = vsnprintf_s(destination, capacity, count, format, arguments);
  va_end(arguments);
  return written;
}

__attribute__((format(printf, 3, 4))) inline int sprintf_s(char* destination, size_t capacity, const char* format,
                                                           ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = std::vsnprintf(destination, capacity, format, arguments);
  va_end(arguments);
  return written < 0 || static_cast<size_t>(written) >= capacity ? -1 : written;
}
