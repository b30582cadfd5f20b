// A place in L1 as a vector core names it, and as its cube core has it.
#pragma once
#include <string>

#include "../core/machine.h"
#include "vnpu/device.h"

namespace vnpu {

class TscmPlace {
 public:
  // Of the vector core that is running.
  explicit TscmPlace(const void* p)
      : offset_(static_cast<uint64_t>(static_cast<const uint8_t*>(p) -
                                      static_cast<const uint8_t*>(local_base(Memory::L1)))) {}
  // Of the cube core that is running, whose own buffers grow towards those of its vector cores.
  void* on_cube_core(const char* api) const {
    const uint64_t own = local_bytes(Memory::L1) - core().local_left(Memory::L1);
    if (offset_ < own)
      misuse(api,
             ("the vector core's buffer in TSCM begins at byte " + std::to_string(offset_) +
              " of L1, where the first " + std::to_string(own) + " bytes are the cube core's and its Matmul objects'")
                 .c_str());
    return static_cast<uint8_t*>(local_base(Memory::L1)) + offset_;
  }

 private:
  uint64_t offset_;
};

}  // namespace vnpu
