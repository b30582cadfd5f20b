// What handing data from one core of a group to another takes: global memory of a core's own, and order between pipes.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "../core/memory.h"
#include "vnpu/device.h"

namespace vnpu {

// Global memory of `bytes` for each core that asks, or by other numbers; kept for later launches.
class CoreRooms {
 public:
  explicit CoreRooms(size_t bytes) : bytes_(bytes) {}
  uint8_t* of(int core) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<uint8_t[]>& room = rooms_[core];
    if (room == nullptr) {
      room = std::make_unique<uint8_t[]>(bytes_);
      gm_register_room(room.get(), bytes_);
    }
    return room.get();
  }

 private:
  const size_t bytes_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<uint8_t[]>> rooms_;
};

// What `dst` does from now on waits for what `src` has done.
inline void order(Pipe src, Pipe dst) {
  const int id = event_allocate(src, dst);
  set_flag(src, dst, id);
  wait_flag(src, dst, id);
  event_release(src, dst, id);
}

}  // namespace vnpu
