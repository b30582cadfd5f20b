// A kernel of a loaded binary, as its translation unit leaves it (vnpu_export.h) and the loader finds it.
#pragma once
#include <cstdint>

namespace vnpu {

using EntryPoint = void (*)(void** args);

// The layout is part of the binary format: add fields at the end only.
struct KernelInfo {
  const char* name;
  EntryPoint entry;  // args[i] points at parameter i
  uint32_t param_count;
  const uint32_t* param_sizes;  // bytes
  bool auto_sync;               // built with --cce-auto-sync=on
  bool guarded;   // its own loads and stores are checked (core/guard.h); in what was padding, so 0 if unknown
  int core_type;  // 0 vector cores, 1 cube cores, 2 / 3 mixed 1:1 / 1:2
  const EntryPoint* cube_entry;  // of a mixed kernel: as it is compiled for cube cores
};

}  // namespace vnpu
