// Device and pinned host memory, copies and fills. Device memory is host memory that the machine knows about.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

#include "acl/acl_rt.h"
#include "../core/memory.h"
#include "state.h"

using namespace vnpu_acl;

namespace {

constexpr size_t kAlignment = 512;     // the runtime manual's alignment of device memory
constexpr size_t kHugePage = 2 << 20;  // larger memory gets such pages: touching small ones for the first time is slow

struct Block {
  size_t size = 0;  // bytes that may be touched
  bool device = false;
  bool owned = false;  // allocated here, not adopted
};

struct Memory {
  std::map<uintptr_t, Block> blocks;  // by address
  size_t used = 0;
};

Memory& memory() {
  static auto* const instance = new Memory;
  return *instance;
}

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// The device's memory, or the host's where that is smaller: an allocation beyond it could only end in an OOM kill.
size_t capacity() {
  static const size_t host = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  const auto device = static_cast<size_t>(chip_number("memory.hbm_gb") * (1ULL << 30));
  return std::min(device, host);
}

const std::pair<const uintptr_t, Block>* find_block(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto next = memory().blocks.upper_bound(address);
  if (next == memory().blocks.begin()) return nullptr;
  --next;
  return address < next->first + next->second.size ? &*next : nullptr;
}

// Bytes from `pointer` to the end of its device memory, over adjoining blocks; 0 when it is not device memory.
size_t device_bytes(const void* pointer, size_t wanted) {
  size_t reach = 0;
  while (reach < wanted) {
    const char* at = static_cast<const char*>(pointer) + reach;
    const auto* block = find_block(at);
    if (block == nullptr || !block->second.device) break;
    reach += block->first + block->second.size - reinterpret_cast<uintptr_t>(at);
  }
  return reach;
}

int allocate_device(const char* function, void** pointer, size_t size, size_t extra) {
  if (pointer == nullptr || size == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the size is 0 or the result pointer is null", function);
  }
  const size_t allocated = round_up(size, 32) + extra;
  if (!take_capacity(allocated)) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: %zu bytes do not fit, %zu of %zu bytes are in use", function, size,
                memory().used, capacity());
  }
  const size_t alignment = size < kHugePage ? kAlignment : kHugePage;
  void* block = std::aligned_alloc(alignment, round_up(allocated, kAlignment));
  if (block == nullptr) {
    give_capacity(allocated);
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host has no %zu bytes left", function, size);
  }
  if (size >= kHugePage) madvise(block, size / kHugePage * kHugePage, MADV_HUGEPAGE);  // where the system has them
  const Lock lock(state_mutex());
  memory().blocks[reinterpret_cast<uintptr_t>(block)] = {allocated, true, true};
  vnpu::gm_register(block, size, allocated);
  *pointer = block;
  return ACL_SUCCESS;
}

double copy_time_us(size_t bytes, aclrtMemcpyKind kind) {
  const bool on_device = kind == ACL_MEMCPY_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;
  // On the device a byte is read and written through the same memory.
  const double gb_per_s = on_device ? chip_number("memory.hbm_gb_per_s") / 2 : chip_number("host_link.gb_per_s");
  return chip_number("host_link.latency_us") + static_cast<double>(bytes) / (gb_per_s * 1e3);
}

// Checks a copy and carries it out.
int copy(const char* function, void* dst, size_t dst_max, const void* src, size_t count, aclrtMemcpyKind kind) {
  if (count == 0) return ACL_SUCCESS;
  if (dst == nullptr || src == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: a pointer is null", function);
  if (count > dst_max) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes do not fit the destination's %zu", function, count, dst_max);
  }
  const bool to_device = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  const bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  const Lock lock(state_mutex());
  if (to_device && device_bytes(dst, count) < count) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes at destination %p leave device memory (%zu are inside)",
                function, count, dst, device_bytes(dst, count));
  }
  if (from_device && device_bytes(src, count) < count) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes at source %p leave device memory (%zu are inside)", function,
                count, src, device_bytes(src, count));
  }
  std::memmove(dst, src, count);
  if (to_device) vnpu::gm_written(dst, count);
  return ACL_SUCCESS;
}

int fill(const char* function, void* dst, size_t dst_max, int32_t value, size_t count) {
  if (count == 0) return ACL_SUCCESS;
  if (count > dst_max) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes do not fit the destination's %zu", function, count, dst_max);
  }
  const Lock lock(state_mutex());
  if (device_bytes(dst, count) < count) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes at %p leave device memory", function, count, dst);
  }
  std::memset(dst, value, count);
  vnpu::gm_written(dst, count);
  return ACL_SUCCESS;
}

// Accounts for a finished synchronous command: the host waits for it, and learns of kernels that failed before it.
int finish_synchronous(double duration_us) {
  const Lock lock(state_mutex());
  host_advance(duration_us);
  return take_failure(nullptr);
}

int finish_on_stream(const char* function, aclrtStream stream, double duration_us) {
  const Lock lock(state_mutex());
  Stream* found = find_stream(stream);
  if (found == nullptr) return bad_stream(function);
  advance(*found, duration_us);
  return ACL_SUCCESS;
}

}  // namespace

namespace vnpu_acl {

bool take_capacity(size_t size) {
  const Lock lock(state_mutex());
  if (size > capacity() || memory().used > capacity() - size) return false;
  memory().used += size;
  return true;
}

void give_capacity(size_t size) {
  const Lock lock(state_mutex());
  memory().used -= size;
}

void adopt_device_range(void* base, size_t size) {
  const Lock lock(state_mutex());
  memory().blocks[reinterpret_cast<uintptr_t>(base)] = {size, true, false};
  vnpu::gm_register(base, size, size);
}

void release_device_range(void* base) {
  const Lock lock(state_mutex());
  vnpu::gm_unregister(base);
  memory().blocks.erase(reinterpret_cast<uintptr_t>(base));
}

}  // namespace vnpu_acl

aclError aclrtMalloc(void** pointer, size_t size, aclrtMemMallocPolicy) {
  return allocate_device("aclrtMalloc", pointer, size, 32);
}
aclError aclrtMallocCached(void** pointer, size_t size, aclrtMemMallocPolicy) {
  return allocate_device("aclrtMallocCached", pointer, size, 32);
}
aclError aclrtMallocAlign32(void** pointer, size_t size, aclrtMemMallocPolicy) {
  return allocate_device("aclrtMallocAlign32", pointer, size, 0);
}
aclError aclrtMallocWithCfg(void** pointer, size_t size, aclrtMemMallocPolicy, aclrtMallocConfig*) {
  return allocate_device("aclrtMallocWithCfg", pointer, size, 32);
}

aclError aclrtFree(void* pointer) {
  size_t size = 0;
  {
    const Lock lock(state_mutex());
    const auto found = memory().blocks.find(reinterpret_cast<uintptr_t>(pointer));
    if (found == memory().blocks.end() || !found->second.device || !found->second.owned) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtFree: %p was not allocated, or is freed already", pointer);
    }
    size = found->second.size;
    memory().blocks.erase(found);
    vnpu::gm_unregister(pointer);
  }
  give_capacity(size);
  std::free(pointer);
  return ACL_SUCCESS;
}

aclError aclrtMallocHostWithCfg(void** pointer, uint64_t size, aclrtMallocConfig*) {
  if (pointer == nullptr || size == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMallocHost: the size is 0 or the result pointer is null");
  }
  void* block = std::aligned_alloc(kAlignment, round_up(size, kAlignment));
  if (block == nullptr) return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "aclrtMallocHost: no %zu bytes left", size_t{size});
  const Lock lock(state_mutex());
  memory().blocks[reinterpret_cast<uintptr_t>(block)] = {size, false, true};
  *pointer = block;
  return ACL_SUCCESS;
}

aclError aclrtMallocHost(void** pointer, size_t size) { return aclrtMallocHostWithCfg(pointer, size, nullptr); }

aclError aclrtFreeHost(void* pointer) {
  {
    const Lock lock(state_mutex());
    const auto found = memory().blocks.find(reinterpret_cast<uintptr_t>(pointer));
    if (found == memory().blocks.end() || found->second.device) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtFreeHost: %p was not allocated, or is freed already", pointer);
    }
    memory().blocks.erase(found);
  }
  std::free(pointer);
  return ACL_SUCCESS;
}

aclError aclrtMemcpy(void* dst, size_t dst_max, const void* src, size_t count, aclrtMemcpyKind kind) {
  const int code = copy("aclrtMemcpy", dst, dst_max, src, count, kind);
  return code != ACL_SUCCESS ? code : finish_synchronous(copy_time_us(count, kind));
}

aclError aclrtMemcpyAsync(void* dst, size_t dst_max, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  const int code = copy("aclrtMemcpyAsync", dst, dst_max, src, count, kind);
  return code != ACL_SUCCESS ? code : finish_on_stream("aclrtMemcpyAsync", stream, copy_time_us(count, kind));
}

aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t dst_max, const void* src, size_t count, aclrtMemcpyKind kind,
                                       aclrtStream stream) {
  return aclrtMemcpyAsync(dst, dst_max, src, count, kind, stream);
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
  if (width > dst_pitch || width > src_pitch) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpy2d: the width %zu exceeds a pitch", width);
  }
  for (size_t row = 0; row < height; ++row) {
    const int code = copy("aclrtMemcpy2d", static_cast<char*>(dst) + row * dst_pitch, width,
                          static_cast<const char*>(src) + row * src_pitch, width, kind);
    if (code != ACL_SUCCESS) return code;
  }
  return finish_on_stream("aclrtMemcpy2d", stream, copy_time_us(width * height, kind));
}

aclError aclrtMemcpy2d(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
  const int code = aclrtMemcpy2dAsync(dst, dst_pitch, src, src_pitch, width, height, kind, nullptr);
  return code != ACL_SUCCESS ? code : aclrtSynchronizeStream(nullptr);
}

aclError aclrtMemset(void* dst, size_t dst_max, int32_t value, size_t count) {
  const int code = fill("aclrtMemset", dst, dst_max, value, count);
  return code != ACL_SUCCESS ? code : finish_synchronous(copy_time_us(count, ACL_MEMCPY_DEVICE_TO_DEVICE));
}

aclError aclrtMemsetAsync(void* dst, size_t dst_max, int32_t value, size_t count, aclrtStream stream) {
  const int code = fill("aclrtMemsetAsync", dst, dst_max, value, count);
  return code != ACL_SUCCESS
             ? code
             : finish_on_stream("aclrtMemsetAsync", stream, copy_time_us(count, ACL_MEMCPY_DEVICE_TO_DEVICE));
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free_bytes, size_t* total_bytes) {
  const Lock lock(state_mutex());
  *total_bytes = capacity();
  *free_bytes = capacity() - memory().used;
  return ACL_SUCCESS;
}

aclError aclrtPointerGetAttributes(const void* pointer, aclrtPtrAttributes* attributes) {
  const Lock lock(state_mutex());
  *attributes = {};
  const auto* block = find_block(pointer);
  attributes->location.type = block == nullptr       ? ACL_MEM_LOCATION_TYPE_UNREGISTERED
                              : block->second.device ? ACL_MEM_LOCATION_TYPE_DEVICE
                                                     : ACL_MEM_LOCATION_TYPE_HOST;
  attributes->pageSize = 4096;
  return ACL_SUCCESS;
}
