// Interfaces torch_npu links against that have no public header here: profiling reports and the older rt* runtime.
#include <chrono>
#include <functional>
#include <string_view>

#include "state.h"

using namespace vnpu_acl;

// Profiling data is accepted and dropped: times of kernels come from vnpu_last_report and from events.
VNPU_ACL_EXPORT int32_t MsprofRegisterCallback(uint32_t, int32_t (*)(uint32_t, void*, uint32_t)) { return 0; }
VNPU_ACL_EXPORT int32_t MsprofReportApi(uint32_t, const void*) { return 0; }
VNPU_ACL_EXPORT int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) { return 0; }
VNPU_ACL_EXPORT int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) { return 0; }
VNPU_ACL_EXPORT uint64_t MsprofGetHashId(const char* text, size_t length) {
  return std::hash<std::string_view>{}({text, length});
}
VNPU_ACL_EXPORT uint64_t MsprofSysCycleTime() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Used by torch_npu's MLIR backend and its collective kernels only.
VNPU_ACL_EXPORT int32_t rtDevBinaryRegister(const void*, void**) {
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "rtDevBinaryRegister: load kernels with aclrtBinaryLoadFromData");
}
VNPU_ACL_EXPORT int32_t rtFunctionRegister(void*, const void*, const char*, const void*, uint32_t) {
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "rtFunctionRegister: use aclrtBinaryGetFunction");
}
VNPU_ACL_EXPORT int32_t rtKernelLaunch(const void*, uint32_t, void*, uint32_t, void*, void*) {
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "rtKernelLaunch: use aclrtLaunchKernelWithArgsArray");
}
VNPU_ACL_EXPORT int32_t rtGetC2cCtrlAddr(uint64_t*, uint32_t*) {
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "rtGetC2cCtrlAddr: there is no hardware synchronization address");
}
