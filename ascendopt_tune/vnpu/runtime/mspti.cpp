// MSPTI, as far as a profiler needs it that wants to know which kernels ran: libmspti.so leads here. Kernels are
// recorded with their modelled durations, and the ids that the caller has pushed for whoever launches them. Copies,
// markers, communication and calls of the runtime may be asked for, and have no records. The interface is that of
// Ascend/pytorch's third_party/mspti/mspti_activity.h and of CANN's page of msptiResult.
#include "mspti.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "acl/acl_rt.h"
#include "state.h"

namespace {

enum Result { kSuccess = 0, kInvalidParameter = 1, kMultipleSubscribers = 2, kNoMoreRecords = 3, kQueueEmpty = 5 };
enum Kind : int { kKernel = 2, kExternalCorrelation = 8, kKinds = 13 };

// Records as the profiler reads them: fields one behind the other, the whole a multiple of 8 bytes.
struct __attribute__((packed, aligned(8))) KernelRecord {
  int kind = kKernel;
  uint64_t start_ns, end_ns;
  uint32_t device, stream;
  uint64_t correlation;
  const char* type;
  const char* name;
};
struct __attribute__((packed, aligned(8))) CorrelationRecord {
  int kind = kExternalCorrelation;
  int external_kind;
  uint64_t external, correlation;
};
static_assert(sizeof(KernelRecord) == 56 && sizeof(CorrelationRecord) == 24);

using RequestBuffer = void (*)(uint8_t**, size_t*, size_t*);
using CompleteBuffer = void (*)(uint8_t*, size_t, size_t);

struct Activities {
  std::mutex mutex;
  std::array<bool, kKinds> enabled{};
  RequestBuffer request = nullptr;
  CompleteBuffer complete = nullptr;
  bool subscribed = false;
  uint64_t launches = 0;
  std::vector<std::string> records;  // bytes of each, in order
  std::set<std::string> names;       // what records point to, for as long as the process lives
  std::map<int, uint64_t> stream_end_ns;
};

Activities& activities() {
  static auto* const all = new Activities;  // profilers ask at the process' end
  return *all;
}

std::atomic<bool> kernels_wanted{false};

// The ids pushed by this thread, by kind.
std::map<int, std::vector<uint64_t>>& external_ids() {
  static thread_local std::map<int, std::vector<uint64_t>> ids;
  return ids;
}

template <typename Record>
std::string bytes_of(const Record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

size_t size_of_record(const uint8_t* at) {
  int kind;
  memcpy(&kind, at, sizeof kind);
  return kind == kKernel ? sizeof(KernelRecord) : sizeof(CorrelationRecord);
}

// As CANN's runtime calls tasks.
const char* task_type(int core_type) {
  static constexpr std::array<const char*, 4> kTypes = {"KERNEL_AIVEC", "KERNEL_AICORE", "KERNEL_MIX_AIC",
                                                        "KERNEL_MIX_AIC"};
  return core_type >= 0 && core_type < static_cast<int>(kTypes.size()) ? kTypes[core_type] : "KERNEL_AICORE";
}

int set_enabled(int kind, bool on) {
  if (kind <= 0 || kind >= kKinds) return kInvalidParameter;
  Activities& all = activities();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.enabled[kind] = on;
  kernels_wanted = all.enabled[kKernel];
  return kSuccess;
}

// Hands what is recorded to the profiler, in buffers of its own.
int deliver() {
  Activities& all = activities();
  std::vector<std::string> records;
  RequestBuffer request = nullptr;
  CompleteBuffer complete = nullptr;
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    request = all.request;
    complete = all.complete;
    if (request == nullptr) return kSuccess;
    records.swap(all.records);
  }
  for (size_t next = 0; next < records.size();) {
    uint8_t* buffer = nullptr;
    size_t size = 0;
    size_t most = 0;
    request(&buffer, &size, &most);
    if (buffer == nullptr) return kSuccess;  // declined: documented to drop records
    size_t used = 0;
    for (size_t count = 0; next < records.size() && used + records[next].size() <= size && (most == 0 || count < most);
         ++count) {
      memcpy(buffer + used, records[next].data(), records[next].size());
      used += records[next++].size();
    }
    complete(buffer, size, used);
    if (used == 0) return kSuccess;  // no record fits
  }
  return kSuccess;
}

}  // namespace

namespace vnpu_acl {

bool kernel_records_wanted() { return kernels_wanted.load(std::memory_order_relaxed); }

uint64_t record_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void record_kernel(const std::string& name, const vnpu::KernelInfo& info, int stream_id, uint64_t issued_ns,
                   double duration_us) {
  int32_t device = 0;
  aclrtGetDevice(&device);
  Activities& all = activities();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const uint64_t correlation = ++all.launches;
  if (all.enabled[kExternalCorrelation]) {
    for (const auto& [kind, ids] : external_ids()) {
      if (ids.empty()) continue;
      CorrelationRecord record{};
      record.kind = kExternalCorrelation;
      record.external_kind = kind;
      record.external = ids.back();
      record.correlation = correlation;
      all.records.push_back(bytes_of(record));
    }
  }
  uint64_t& ended = all.stream_end_ns[stream_id];
  KernelRecord record{};
  record.kind = kKernel;
  record.start_ns = std::max(issued_ns, ended);
  record.end_ns = record.start_ns + static_cast<uint64_t>(std::llround(duration_us * 1e3));
  record.device = static_cast<uint32_t>(device);
  record.stream = static_cast<uint32_t>(stream_id);
  record.correlation = correlation;
  record.type = task_type(info.core_type);
  record.name = all.names.insert(name).first->c_str();
  ended = record.end_ns;
  all.records.push_back(bytes_of(record));
}

}  // namespace vnpu_acl

// One subscriber at a time, as documented; its callback would be told of calls of the runtime, which nobody records.
VNPU_ACL_EXPORT int msptiSubscribe(void** subscriber, void*, void*) {
  if (subscriber == nullptr) return kInvalidParameter;
  Activities& all = activities();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.subscribed) return kMultipleSubscribers;
  all.subscribed = true;
  *subscriber = &all;
  return kSuccess;
}

VNPU_ACL_EXPORT int msptiUnsubscribe(void* subscriber) {
  Activities& all = activities();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (subscriber != &all || !all.subscribed) return kInvalidParameter;
  all.subscribed = false;
  return kSuccess;
}

VNPU_ACL_EXPORT int msptiActivityRegisterCallbacks(RequestBuffer request, CompleteBuffer complete) {
  if (request == nullptr || complete == nullptr) return kInvalidParameter;
  Activities& all = activities();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.request = request;
  all.complete = complete;
  return kSuccess;
}

VNPU_ACL_EXPORT int msptiActivityEnable(int kind) { return set_enabled(kind, true); }
VNPU_ACL_EXPORT int msptiActivityDisable(int kind) { return set_enabled(kind, false); }

VNPU_ACL_EXPORT bool msptiActivityIsEnabled(int kind) {
  Activities& all = activities();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return kind > 0 && kind < kKinds && all.enabled[kind];
}

VNPU_ACL_EXPORT int msptiActivityFlushAll(uint32_t) { return deliver(); }

// `record`: the one before, null for the first; becomes the next one.
VNPU_ACL_EXPORT int msptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, void** record) {
  if (buffer == nullptr || record == nullptr) return kInvalidParameter;
  auto* const before = static_cast<uint8_t*>(*record);
  uint8_t* const next = before == nullptr ? buffer : before + size_of_record(before);
  if (next >= buffer + valid_bytes) return kNoMoreRecords;
  *record = next;
  return kSuccess;
}

VNPU_ACL_EXPORT int msptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  if (kind <= 0) return kInvalidParameter;
  external_ids()[kind].push_back(id);
  return kSuccess;
}

VNPU_ACL_EXPORT int msptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  std::vector<uint64_t>& ids = external_ids()[kind];
  if (ids.empty()) return kQueueEmpty;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return kSuccess;
}
