// Streams, the host clock, callbacks and everything that synchronizes.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "acl/acl_mdl.h"
#include "acl/acl_rt.h"
#include "state.h"

namespace vnpu_acl {
namespace {

struct Streams {
  std::map<aclrtStream, std::unique_ptr<Stream>> live;
  Stream default_stream;
  double host_us = 0;
  int next_id = 1;
  std::deque<std::string> failed;  // the last kernels that failed on a stream, as vnpu_failure tells of them
  uint64_t failures = 0;
};

constexpr size_t kKeptFailures = 64;

// Never destroyed: torch_npu's static destructors still synchronize streams while the process ends.
Streams& streams() {
  static auto* const instance = new Streams;
  return *instance;
}

}  // namespace

std::mutex& state_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

Stream* find_stream(aclrtStream handle) {
  if (handle == nullptr) return &streams().default_stream;
  const auto found = streams().live.find(handle);
  return found == streams().live.end() ? nullptr : found->second.get();
}

Stream* find_stream_by_id(int id) {
  if (id == 0) return &streams().default_stream;
  for (auto& entry : streams().live) {
    if (entry.second->id == id) return entry.second.get();
  }
  return nullptr;
}

int bad_stream(const char* function) {
  return fail(ACL_ERROR_RT_STREAM_CONTEXT, "%s: the stream handle is not a live stream", function);
}

void advance(Stream& stream, double duration_us) {
  stream.time_us = std::max(stream.time_us, streams().host_us) + duration_us;
}

double host_time_us() { return streams().host_us; }
void host_wait_until(double time_us) { streams().host_us = std::max(streams().host_us, time_us); }
void host_advance(double duration_us) { streams().host_us += duration_us; }

int take_failure(Stream* stream) {
  const auto report = [](Stream& failed) {
    const Failure failure = std::move(*failed.failure);
    failed.failure.reset();
    return fail_text(failure.code, failure.message);
  };
  if (stream != nullptr) return stream->failure ? report(*stream) : ACL_SUCCESS;
  if (streams().default_stream.failure) return report(streams().default_stream);
  for (auto& entry : streams().live) {
    if (entry.second->failure) return report(*entry.second);
  }
  return ACL_SUCCESS;
}

void note_failure(const std::string& message, std::vector<uintptr_t> addresses) {
  std::string text;
  for (const uintptr_t address : addresses) text += std::to_string(address) + " ";
  streams().failed.push_back(text + "\n" + message);
  if (streams().failed.size() > kKeptFailures) streams().failed.pop_front();
  ++streams().failures;
}

}  // namespace vnpu_acl

using namespace vnpu_acl;

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  if (stream == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtCreateStream: stream is null");
  const Lock lock(state_mutex());
  auto created = std::make_unique<Stream>();
  created->id = streams().next_id++;
  created->priority = priority;
  created->flags = flag;
  *stream = created.get();
  streams().live[*stream] = std::move(created);
  return ACL_SUCCESS;
}

aclError aclrtCreateStream(aclrtStream* stream) { return aclrtCreateStreamWithConfig(stream, 0, 0); }

aclError aclrtDestroyStream(aclrtStream stream) {
  const Lock lock(state_mutex());
  const auto found = streams().live.find(stream);
  if (found == streams().live.end()) return bad_stream("aclrtDestroyStream");
  // A failure nobody has asked for must not vanish with its stream: the next device synchronization reports it.
  if (found->second->failure && !streams().default_stream.failure) {
    streams().default_stream.failure = found->second->failure;
  }
  host_wait_until(found->second->time_us);
  streams().live.erase(found);
  return ACL_SUCCESS;
}

aclError aclrtDestroyStreamForce(aclrtStream stream) { return aclrtDestroyStream(stream); }

aclError aclrtSynchronizeStream(aclrtStream stream) {
  const Lock lock(state_mutex());
  Stream* found = find_stream(stream);
  if (found == nullptr) return bad_stream("aclrtSynchronizeStream");
  host_wait_until(found->time_us);
  return take_failure(found);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t) { return aclrtSynchronizeStream(stream); }

aclError aclrtSynchronizeDevice() {
  const Lock lock(state_mutex());
  host_wait_until(streams().default_stream.time_us);
  for (const auto& entry : streams().live) host_wait_until(entry.second->time_us);
  return take_failure(nullptr);
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t) { return aclrtSynchronizeDevice(); }

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  const Lock lock(state_mutex());
  if (find_stream(stream) == nullptr) return bad_stream("aclrtStreamQuery");
  *status = ACL_STREAM_STATUS_COMPLETE;
  return ACL_SUCCESS;
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* stream_id) {
  const Lock lock(state_mutex());
  const Stream* found = find_stream(stream);
  if (found == nullptr) return bad_stream("aclrtStreamGetId");
  *stream_id = found->id;
  return ACL_SUCCESS;
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  const Lock lock(state_mutex());
  const Stream* found = find_stream(stream);
  if (found == nullptr) return bad_stream("aclrtStreamGetPriority");
  *priority = found->priority;
  return ACL_SUCCESS;
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  const Lock lock(state_mutex());
  const Stream* found = find_stream(stream);
  if (found == nullptr) return bad_stream("aclrtStreamGetFlags");
  *flags = found->flags;
  return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t) {
  const Lock lock(state_mutex());
  return find_stream(stream) == nullptr ? bad_stream("aclrtSetStreamFailureMode") : ACL_SUCCESS;
}

// Callbacks run at once, on the calling thread: everything issued before them has finished.
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  {
    const Lock lock(state_mutex());
    if (find_stream(stream) == nullptr) return bad_stream("aclrtLaunchHostFunc");
  }
  fn(args);
  return ACL_SUCCESS;
}

aclError aclrtLaunchCallback(aclrtCallback fn, void* user_data, aclrtCallbackBlockType, aclrtStream stream) {
  return aclrtLaunchHostFunc(stream, fn, user_data);
}

aclError aclrtSubscribeReport(uint64_t, aclrtStream) { return ACL_SUCCESS; }
aclError aclrtUnSubscribeReport(uint64_t, aclrtStream) { return ACL_SUCCESS; }
aclError aclrtProcessReport(int32_t) { return ACL_SUCCESS; }

aclError aclmdlRICaptureGetInfo(aclrtStream, aclmdlRICaptureStatus* status, aclmdlRI* model) {
  if (status != nullptr) *status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  if (model != nullptr) *model = nullptr;
  return ACL_SUCCESS;
}

// How many kernels failed on a stream so far.
VNPU_ACL_EXPORT uint64_t vnpu_failures() {
  const Lock lock(state_mutex());
  return streams().failures;
}

// Of the failure with this number, from 0: the arguments that may be addresses, in decimal, and after a line break what
// is wrong; nullptr for one that is forgotten, or isn't yet. Valid until this thread asks again.
VNPU_ACL_EXPORT const char* vnpu_failure(uint64_t number) {
  static thread_local std::string text;
  const Lock lock(state_mutex());
  const uint64_t first = streams().failures - streams().failed.size();
  if (number < first || number >= streams().failures) return nullptr;
  text = streams().failed[number - first];
  return text.c_str();
}
