// Events: points of virtual time on a stream.
#include <algorithm>
#include <map>
#include <memory>

#include "acl/acl_rt.h"
#include "state.h"

using namespace vnpu_acl;

namespace {

struct Event {
  uint32_t flags = 0;
  bool recorded = false;
  double time_us = 0;
  int stream_id = 0;
  bool after_failure = false;  // the stream had failed when the event was recorded
};

std::map<aclrtEvent, std::unique_ptr<Event>>& events() {
  static auto* const live = new std::map<aclrtEvent, std::unique_ptr<Event>>;
  return *live;
}

Event* find_event(aclrtEvent handle) {
  const auto found = events().find(handle);
  return found == events().end() ? nullptr : found->second.get();
}

int bad_event(const char* function) {
  return fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: the event handle is not a live event", function);
}

}  // namespace

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  if (event == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtCreateEvent: event is null");
  const Lock lock(state_mutex());
  auto created = std::make_unique<Event>();
  created->flags = flag;
  *event = created.get();
  events()[*event] = std::move(created);
  return ACL_SUCCESS;
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) { return aclrtCreateEventWithFlag(event, flag); }

aclError aclrtCreateEvent(aclrtEvent* event) {
  return aclrtCreateEventWithFlag(event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  const Lock lock(state_mutex());
  return events().erase(event) == 1 ? ACL_SUCCESS : bad_event("aclrtDestroyEvent");
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  const Lock lock(state_mutex());
  Event* found = find_event(event);
  if (found == nullptr) return bad_event("aclrtRecordEvent");
  const Stream* on = find_stream(stream);
  if (on == nullptr) return bad_stream("aclrtRecordEvent");
  found->recorded = true;
  found->time_us = std::max(on->time_us, host_time_us());
  found->stream_id = on->id;
  found->after_failure = on->failure.has_value();
  return ACL_SUCCESS;
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  const Lock lock(state_mutex());
  if (find_stream(stream) == nullptr) return bad_stream("aclrtResetEvent");
  // The reset is a command behind the waits on the event, which all have finished. Its time stays readable.
  return find_event(event) == nullptr ? bad_event("aclrtResetEvent") : ACL_SUCCESS;
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  const Lock lock(state_mutex());
  Stream* waiting = find_stream(stream);
  if (waiting == nullptr) return bad_stream("aclrtStreamWaitEvent");
  const Event* found = find_event(event);
  if (found == nullptr) return bad_event("aclrtStreamWaitEvent");
  if (found->recorded) waiting->time_us = std::max(waiting->time_us, found->time_us);
  return ACL_SUCCESS;
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t) {
  return aclrtStreamWaitEvent(stream, event);
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  const Lock lock(state_mutex());
  Event* found = find_event(event);
  if (found == nullptr) return bad_event("aclrtSynchronizeEvent");
  if (!found->recorded) return ACL_SUCCESS;
  host_wait_until(found->time_us);
  Stream* stream = found->after_failure ? find_stream_by_id(found->stream_id) : nullptr;
  found->after_failure = false;
  return stream == nullptr ? ACL_SUCCESS : take_failure(stream);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t) { return aclrtSynchronizeEvent(event); }

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  const Lock lock(state_mutex());
  if (find_event(event) == nullptr) return bad_event("aclrtQueryEvent");
  *status = ACL_EVENT_STATUS_COMPLETE;
  return ACL_SUCCESS;
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  const Lock lock(state_mutex());
  if (find_event(event) == nullptr) return bad_event("aclrtQueryEventStatus");
  // An event without a record has nothing to wait for, and is complete as well.
  *status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  return ACL_SUCCESS;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  const Lock lock(state_mutex());
  if (find_event(event) == nullptr) return bad_event("aclrtQueryEventWaitStatus");
  *status = ACL_EVENT_WAIT_STATUS_COMPLETE;
  return ACL_SUCCESS;
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent start, aclrtEvent end) {
  const Lock lock(state_mutex());
  const Event* first = find_event(start);
  const Event* second = find_event(end);
  if (first == nullptr || second == nullptr) return bad_event("aclrtEventElapsedTime");
  if (!first->recorded || !second->recorded) {
    return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "aclrtEventElapsedTime: the %s event has not been recorded",
                first->recorded ? "end" : "start");
  }
  *ms = static_cast<float>((second->time_us - first->time_us) * 1e-3);
  return ACL_SUCCESS;
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  const Lock lock(state_mutex());
  const Event* found = find_event(event);
  if (found == nullptr) return bad_event("aclrtEventGetTimestamp");
  if (!found->recorded) return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event has not been recorded");
  *timestamp = static_cast<uint64_t>(found->time_us);
  return ACL_SUCCESS;
}
