// The process, the device and its properties. One device; what it is comes from the chip file in force.
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <unistd.h>

#include "../core/launch.h"
#include "acl/acl_mdl.h"
#include "acl/acl_rt.h"
#include "state.h"

namespace vnpu_acl {

std::string chip_text(const char* key, const char* fallback) {
  const std::string value = vnpu_chip_value(key);
  return value.empty() ? fallback : value;
}

double chip_number(const char* key) {
  const std::string value = vnpu_chip_value(key);
  return value.empty() ? 0 : std::stod(value);
}

}  // namespace vnpu_acl

using namespace vnpu_acl;

namespace {

struct Process {
  bool initialized = false;
  std::map<aclSysParamOpt, int64_t> options;
  aclrtFloatOverflowMode overflow_mode = ACL_RT_OVERFLOW_MODE_INFNAN;
  std::set<std::string> soc_names;  // returned pointers stay valid
};

Process& process() {
  static auto* const instance = new Process;
  return *instance;
}

// Contexts hold nothing; a thread only wants back the handle it has set.
int primary_context;
thread_local aclrtContext current_context = &primary_context;
// Whether this thread has a device. Asking before is an error, by which torch_npu knows that the device is its to set.
thread_local bool device_is_set = false;

int check_device(const char* function, int64_t device) {
  if (device == 0) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: device %lld does not exist, the only device is 0", function,
              static_cast<long long>(device));
}

int64_t core_count(const char* key) { return static_cast<int64_t>(chip_number(key)); }

}  // namespace

aclError aclInit(const char*) {
  const Lock lock(state_mutex());
  if (process().initialized) return fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit has been called already");
  process().initialized = true;
  return ACL_SUCCESS;
}

aclError aclFinalize() {
  const Lock lock(state_mutex());
  if (!process().initialized) return fail(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize without aclInit");
  process().initialized = false;
  return ACL_SUCCESS;
}

// The interface version the headers follow, not a version of this project.
aclError aclrtGetVersion(int32_t* major, int32_t* minor, int32_t* patch) {
  *major = 1;
  *minor = 17;
  *patch = 0;
  return ACL_SUCCESS;
}

const char* aclrtGetSocName() {
  const std::string name = chip_text("chip.soc_version", "");
  const Lock lock(state_mutex());
  return process().soc_names.insert(name).first->c_str();
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  *count = 1;
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t device) {
  if (const int code = check_device("aclrtSetDevice", device)) return code;
  device_is_set = true;
  return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* device) {
  if (!device_is_set)
    return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtGetDevice: this thread has called no aclrtSetDevice");
  *device = 0;
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t device) {
  if (const int code = check_device("aclrtResetDevice", device)) return code;
  device_is_set = false;
  return aclrtSynchronizeDevice();
}

aclError aclrtResetDeviceForce(int32_t device) { return aclrtResetDevice(device); }
aclError aclrtSetTsDevice(aclrtTsId) { return ACL_SUCCESS; }

aclError aclrtGetRunMode(aclrtRunMode* mode) {
  *mode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclGetDeviceCapability(uint32_t device, aclDeviceInfo info, int64_t* value) {
  if (const int code = check_device("aclGetDeviceCapability", device)) return code;
  switch (info) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      *value = core_count("core.aic");
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      *value = core_count("core.aiv");
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE:
      *value = core_count("memory.l2_bytes");
      return ACL_SUCCESS;
    default:
      return fail(ACL_ERROR_INVALID_PARAM, "aclGetDeviceCapability: unknown property %d", info);
  }
}

aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t* value) {
  if (const int code = check_device("aclrtGetDeviceInfo", device)) return code;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  switch (attribute) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
      *value = 0;
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
      *value = core_count("core.aic");
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      *value = core_count("core.aiv");
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE:
      *value = core_count("memory.ub_bytes");
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes);
      *value = static_cast<int64_t>(total_bytes);
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      *value = core_count("memory.l2_bytes");
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_NPU_ARCH:
      *value = core_count("chip.arch");
      return ACL_SUCCESS;
    default:
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtGetDeviceInfo: property %d is not modelled", attribute);
  }
}

aclError aclrtDeviceGetUuid(int32_t device, aclrtUuid* uuid) {
  if (const int code = check_device("aclrtDeviceGetUuid", device)) return code;
  std::memcpy(uuid->bytes, "ascendopt-vnpu-0", sizeof uuid->bytes);
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  *pid = getpid();
  return ACL_SUCCESS;
}

aclError aclrtDeviceCanAccessPeer(int32_t* can_access, int32_t, int32_t) {
  *can_access = 0;
  return ACL_SUCCESS;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t) {
  return check_device("aclrtDeviceEnablePeerAccess", peer);
}

aclError aclrtCreateContext(aclrtContext* context, int32_t device) {
  if (const int code = check_device("aclrtCreateContext", device)) return code;
  *context = new char;
  current_context = *context;
  device_is_set = true;
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context) {
  if (context == nullptr || context == &primary_context) {
    return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtDestroyContext: the context was not made by aclrtCreateContext");
  }
  if (current_context == context) current_context = &primary_context;
  delete static_cast<char*>(context);
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  if (context == nullptr) return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetCurrentContext: the context is null");
  current_context = context;
  device_is_set = true;
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  *context = current_context;
  return ACL_SUCCESS;
}

aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t*, int32_t* active) {
  if (const int code = check_device("aclrtGetPrimaryCtxState", device)) return code;
  *active = 1;
  return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  const Lock lock(state_mutex());
  *value = process().options[option];
  return ACL_SUCCESS;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  const Lock lock(state_mutex());
  process().options[option] = value;
  return ACL_SUCCESS;
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt option, int64_t* value) { return aclrtGetSysParamOpt(option, value); }
aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value) { return aclrtSetSysParamOpt(option, value); }

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  const Lock lock(state_mutex());
  process().overflow_mode = mode;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  const Lock lock(state_mutex());
  *mode = process().overflow_mode;
  return ACL_SUCCESS;
}

aclError aclrtGetHardwareSyncAddr(void** addr) {
  static char nothing;
  if (addr == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetHardwareSyncAddr: the pointer is null");
  *addr = &nothing;
  return ACL_SUCCESS;
}

// Nothing runs longer than its call, so there is nothing to time out.
aclError aclrtSetOpExecuteTimeOut(uint32_t) { return ACL_SUCCESS; }
aclError aclrtSetOpWaitTimeout(uint32_t) { return ACL_SUCCESS; }

aclError aclGetCannAttributeList(const aclCannAttr** list, size_t* count) {
  static const std::array<aclCannAttr, 2> supported = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};
  *list = supported.data();
  *count = supported.size();
  return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr attribute, int32_t* value) {
  *value = attribute == ACL_CANN_ATTR_INF_NAN || attribute == ACL_CANN_ATTR_BF16 ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclmdlInitDump() { return ACL_SUCCESS; }
aclError aclmdlSetDump(const char*) { return fail(ACL_ERROR_API_NOT_SUPPORT, "aclmdlSetDump: dumps are not written"); }
aclError aclmdlFinalizeDump() { return ACL_SUCCESS; }
