// What the runtime library remembers between calls: errors per thread, streams with their virtual clocks, memory
// blocks.
//
// Commands execute when they are issued, in program order, which is one of the orders a device may choose. Time is
// virtual: each stream has a clock in microseconds, the host has one, and synchronizing joins them:
//   command on a stream:  stream = max(stream, host) + modelled duration
//   record:               event = max(stream, host)      wait: stream = max(stream, event)
//   synchronize:          host = max(host, what is waited for)
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "acl/acl_base.h"

// For exported functions that no public header declares.
#define VNPU_ACL_EXPORT extern "C" __attribute__((visibility("default")))

namespace vnpu_acl {

// Remembers `message` (printf style) for aclGetRecentErrMsg of this thread and returns `code`.
int fail(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));
int fail_text(int code, std::string message);

struct Failure {
  int code;
  std::string message;
};

struct Stream {
  int id = 0;
  uint32_t priority = 0;
  uint32_t flags = 0;
  double time_us = 0;
  std::optional<Failure> failure;  // of a kernel, until a synchronizing call reports it
};

// Guards everything below. Held for bookkeeping only, never while a kernel or a callback runs.
std::mutex& state_mutex();
using Lock = std::lock_guard<std::mutex>;

// The stream of a handle (nullptr is the default stream), or nullptr when the handle is not live. Caller holds the
// mutex.
Stream* find_stream(aclrtStream handle);
Stream* find_stream_by_id(int id);
int bad_stream(const char* function);
// A command of `duration_us` on the stream.
void advance(Stream& stream, double duration_us);
double host_time_us();
void host_wait_until(double time_us);
void host_advance(double duration_us);
// Reports and forgets the failure of `stream`, or of any stream when it is nullptr. Caller holds the mutex.
int take_failure(Stream* stream);

// Notes that a kernel failed on its stream, for vnpu_failures: whoever reads its arguments must learn of it, also after
// a synchronizing call has reported it. Caller holds the mutex.
void note_failure(const std::string& message, std::vector<uintptr_t> addresses);

// The value of a key of the chip file; `fallback` or 0 when it is absent, which no key of the architecture's file is.
std::string chip_text(const char* key, const char* fallback);
double chip_number(const char* key);

// Makes `size` bytes at `base`, memory of another owner, known as device memory (mapped physical memory).
void adopt_device_range(void* base, size_t size);
void release_device_range(void* base);
// Reserves `size` bytes of the device's capacity; false when they don't fit.
bool take_capacity(size_t size);
void give_capacity(size_t size);

}  // namespace vnpu_acl
