// Address ranges and physical memory that are joined later: what torch_npu's expandable segments are built from.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "acl/acl_rt.h"
#include "state.h"

using namespace vnpu_acl;

namespace {

struct Physical {
  int fd = -1;
  size_t size = 0;
};

struct Range {
  size_t size = 0;
  std::map<uintptr_t, size_t> pieces;  // mapped pieces: address -> bytes
  std::vector<void*> runs;             // what is registered: each run of adjoining pieces is one block of device memory
};

struct Ranges {
  std::mutex mutex;  // taken before the state mutex, never the other way round
  std::map<uintptr_t, Range> ranges;
  std::map<aclrtDrvMemHandle, std::unique_ptr<Physical>> physical;
};

Ranges& state() {
  static auto* const instance = new Ranges;
  return *instance;
}

// A tensor may span pieces, so adjoining pieces are registered as one block.
void register_runs(Range& range) {
  for (void* run : range.runs) release_device_range(run);
  range.runs.clear();
  for (auto piece = range.pieces.begin(); piece != range.pieces.end();) {
    const uintptr_t base = piece->first;
    uintptr_t end = base;
    while (piece != range.pieces.end() && piece->first == end) {
      end += piece->second;
      ++piece;
    }
    range.runs.push_back(reinterpret_cast<void*>(base));
    adopt_device_range(reinterpret_cast<void*>(base), end - base);
  }
}

Range* range_of(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto next = state().ranges.upper_bound(address);
  if (next == state().ranges.begin()) return nullptr;
  --next;
  return address < next->first + next->second.size ? &next->second : nullptr;
}

int unsupported(const char* function) {
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: memory is not shared between processes here", function);
}

}  // namespace

aclError aclrtReserveMemAddress(void** pointer, size_t size, size_t, void* expected, uint64_t) {
  if (pointer == nullptr || size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtReserveMemAddress: nothing to do");
  void* base = mmap(expected, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "aclrtReserveMemAddress: %zu bytes: %s", size, strerror(errno));
  }
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().ranges[reinterpret_cast<uintptr_t>(base)].size = size;
  *pointer = base;
  return ACL_SUCCESS;
}

aclError aclrtReleaseMemAddress(void* pointer) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  const auto found = state().ranges.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == state().ranges.end()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtReleaseMemAddress: %p is not a reserved range", pointer);
  }
  found->second.pieces.clear();
  register_runs(found->second);
  munmap(pointer, found->second.size);
  state().ranges.erase(found);
  return ACL_SUCCESS;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size, const aclrtPhysicalMemProp*, uint64_t) {
  if (handle == nullptr || size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMallocPhysical: the size is 0");
  if (!take_capacity(size)) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "aclrtMallocPhysical: %zu bytes do not fit the device", size);
  }
  auto created = std::make_unique<Physical>();
  created->size = size;
  created->fd = memfd_create("virtual-npu", MFD_CLOEXEC);
  if (created->fd < 0 || ftruncate(created->fd, static_cast<off_t>(size)) != 0) {
    const int reason = errno;
    if (created->fd >= 0) close(created->fd);
    give_capacity(size);
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "aclrtMallocPhysical: %zu bytes: %s", size, strerror(reason));
  }
  const std::lock_guard<std::mutex> lock(state().mutex);
  *handle = created.get();
  state().physical[*handle] = std::move(created);
  return ACL_SUCCESS;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  const auto found = state().physical.find(handle);
  if (found == state().physical.end()) return fail(ACL_ERROR_RT_INVALID_HANDLE, "aclrtFreePhysical: unknown handle");
  close(found->second->fd);
  give_capacity(found->second->size);
  state().physical.erase(found);
  return ACL_SUCCESS;
}

aclError aclrtMapMem(void* pointer, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  const auto physical = state().physical.find(handle);
  Range* range = range_of(pointer);
  if (physical == state().physical.end() || range == nullptr || offset > physical->second->size ||
      size > physical->second->size - offset) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMapMem: %zu bytes at %p: unknown handle, range or size", size,
                pointer);
  }
  void* mapped = mmap(pointer, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->second->fd,
                      static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "aclrtMapMem: %zu bytes at %p: %s", size, pointer, strerror(errno));
  }
  range->pieces[reinterpret_cast<uintptr_t>(pointer)] = size;
  register_runs(*range);
  return ACL_SUCCESS;
}

aclError aclrtUnmapMem(void* pointer) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  Range* range = range_of(pointer);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (range == nullptr || range->pieces.count(address) == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtUnmapMem: nothing is mapped at %p", pointer);
  }
  mmap(pointer, range->pieces[address], PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  range->pieces.erase(address);
  register_runs(*range);
  return ACL_SUCCESS;
}

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle, aclrtMemHandleType, uint64_t, uint64_t*) {
  return unsupported("aclrtMemExportToShareableHandle");
}
aclError aclrtMemImportFromShareableHandle(uint64_t, int32_t, aclrtDrvMemHandle*) {
  return unsupported("aclrtMemImportFromShareableHandle");
}
aclError aclrtMemSetPidToShareableHandle(uint64_t, int32_t*, size_t) {
  return unsupported("aclrtMemSetPidToShareableHandle");
}
