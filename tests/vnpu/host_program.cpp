// A host program written for CANN: compiles a kernel at run time, loads it, launches it in every form, checks results.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_rt.h"
#include "acl/acl_rt_compile.h"

#define CHECK(call)                                                                                \
  do {                                                                                             \
    const aclError code = (call);                                                                  \
    if (code != ACL_SUCCESS) {                                                                     \
      std::fprintf(stderr, "line %d: %s = %d: %s\n", __LINE__, #call, code, aclGetRecentErrMsg()); \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)
#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
      return 1;                                                            \
    }                                                                      \
  } while (0)

static const char* const kSource = R"(
#include "kernel_operator.h"
#include "factor.h"

template <typename T>
__global__ __aicore__ void scale_as(GM_ADDR x, GM_ADDR y, uint32_t count, float factor) {
  AscendC::GlobalTensor<T> from, to;
  from.SetGlobalBuffer((__gm__ T*)x, count);
  to.SetGlobalBuffer((__gm__ T*)y, count);
  for (uint32_t i = AscendC::GetBlockIdx(); i < count; i += AscendC::GetBlockNum()) {
    to.SetValue(i, from.GetValue(i) * static_cast<T>(factor) + static_cast<T>(OFFSET));
  }
}

extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, uint32_t count, float factor) {
  AscendC::GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, count);
  to.SetGlobalBuffer((__gm__ float*)y, count);
  for (uint32_t i = AscendC::GetBlockIdx(); i < count; i += AscendC::GetBlockNum()) {
    to.SetValue(i, from.GetValue(i) * factor + OFFSET);
  }
}

extern "C" __global__ __aicore__ void sum_of(GM_ADDR tiling, GM_ADDR y) {
  AscendC::GlobalTensor<int32_t> from, to;
  from.SetGlobalBuffer((__gm__ int32_t*)tiling, 4);
  to.SetGlobalBuffer((__gm__ int32_t*)y, 8);
  to.SetValue(0, from.GetValue(0) + from.GetValue(1) + from.GetValue(2) + from.GetValue(3));
}

extern "C" __global__ __aicore__ void out_of_bounds(GM_ADDR y) {
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)y);
  to.SetValue(1 << 26, 1.0f);
}
)";

static constexpr uint32_t kCount = 1000;
static constexpr size_t kBytes = kCount * sizeof(float);

struct ScaleArgs {
  void* x;
  void* y;
  uint32_t count;
  float factor;
};

static bool is_scaled(const float* y, float factor) {
  for (uint32_t i = 0; i < kCount; ++i) {
    if (std::fabs(y[i] - (static_cast<float>(i) * factor + 3)) > 1e-3F) return false;
  }
  return true;
}

int main() {
  // Compile.
  const char* const header = "#define OFFSET 3\n";
  const char* const header_name = "factor.h";
  aclrtcProg program = nullptr;
  CHECK(aclrtcCreateProg(&program, kSource, "scale.cpp", 1, const_cast<const char**>(&header),
                         const_cast<const char**>(&header_name)));
  CHECK(aclrtcAddNameExpr(program, "scale_as<int32_t>"));
  const char* options[] = {"--npu-arch=dav-2201"};
  if (aclrtcCompileProg(program, 1, options) != ACL_SUCCESS) {
    size_t size = 0;
    CHECK(aclrtcGetCompileLogSize(program, &size));
    std::vector<char> log(size);
    CHECK(aclrtcGetCompileLog(program, log.data()));
    std::fprintf(stderr, "%s", log.data());
    return 1;
  }
  size_t size = 0;
  CHECK(aclrtcGetBinDataSize(program, &size));
  std::vector<char> binary(size);
  CHECK(aclrtcGetBinData(program, binary.data()));
  const char* lowered = nullptr;
  CHECK(aclrtcGetLoweredName(program, "scale_as<int32_t>", &lowered));
  EXPECT(aclrtcGetLoweredName(program, "scale_as<double>", &lowered) == ACL_ERROR_RTC_NAME_EXPR_NOT_VALID);
  CHECK(aclrtcGetLoweredName(program, "scale_as<int32_t>", &lowered));

  // Device, memory, binary.
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  float* host = nullptr;
  void *x = nullptr, *y = nullptr;
  CHECK(aclrtMallocHost(reinterpret_cast<void**>(&host), kBytes));
  CHECK(aclrtMalloc(&x, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMalloc(&y, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  for (uint32_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i);
  CHECK(aclrtMemcpy(x, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  aclrtBinaryLoadOption option;
  option.type = ACL_RT_BINARY_LOAD_OPT_MAGIC;
  option.value.magic = ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE;
  aclrtBinaryLoadOptions load_options;
  load_options.options = &option;
  load_options.numOpt = 1;
  aclrtBinHandle module = nullptr;
  CHECK(aclrtBinaryLoadFromData(binary.data(), size, &load_options, &module));
  aclrtFuncHandle scale = nullptr, scale_int = nullptr, sum_of = nullptr, out_of_bounds = nullptr, missing = nullptr;
  CHECK(aclrtBinaryGetFunction(module, "scale", &scale));
  CHECK(aclrtBinaryGetFunction(module, lowered, &scale_int));
  CHECK(aclrtBinaryGetFunction(module, "sum_of", &sum_of));
  CHECK(aclrtBinaryGetFunction(module, "out_of_bounds", &out_of_bounds));
  EXPECT(aclrtBinaryGetFunction(module, "no_such_kernel", &missing) != ACL_SUCCESS);
  EXPECT(std::strstr(aclGetRecentErrMsg(), "no_such_kernel") != nullptr);

  // Pointers to the arguments, between two events.
  aclrtEvent start = nullptr, end = nullptr;
  CHECK(aclrtCreateEventExWithFlag(&start, ACL_EVENT_TIME_LINE));
  CHECK(aclrtCreateEventExWithFlag(&end, ACL_EVENT_TIME_LINE));
  uint32_t count = kCount;
  float factor = 2;
  void* pointers[] = {&x, &y, &count, &factor};
  CHECK(aclrtRecordEvent(start, stream));
  CHECK(aclrtLaunchKernelWithArgsArray(scale, 8, stream, nullptr, pointers));
  CHECK(aclrtRecordEvent(end, stream));
  CHECK(aclrtSynchronizeEvent(end));
  float milliseconds = 0;
  CHECK(aclrtEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds > 0);
  CHECK(aclrtMemcpy(host, kBytes, y, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT(is_scaled(host, 2));

  // A packed block in host memory, and in device memory.
  ScaleArgs block = {x, y, kCount, 4};
  size_t offset = 0, bytes = 0, params = 0;
  CHECK(aclrtFunctionGetParamCount(scale, &params));
  EXPECT(params == 4);
  CHECK(aclrtFunctionGetParamInfo(scale, 3, &offset, &bytes));
  EXPECT(offset == offsetof(ScaleArgs, factor) && bytes == sizeof(float));
  CHECK(aclrtLaunchKernelWithHostArgs(scale, 4, stream, nullptr, &block, sizeof block, nullptr, 0));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtMemcpy(host, kBytes, y, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT(is_scaled(host, 4));
  block.factor = 5;
  void* device_block = nullptr;
  CHECK(aclrtMalloc(&device_block, sizeof block, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(device_block, sizeof block, &block, sizeof block, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(aclrtLaunchKernel(scale, 4, device_block, sizeof block, stream));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtMemcpy(host, kBytes, y, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT(is_scaled(host, 5));

  // A placeholder: data that travels with the arguments.
  struct {
    void* tiling;
    void* y;
    int32_t data[4];
  } with_data = {nullptr, y, {1, 2, 3, 4}};
  aclrtPlaceHolderInfo place = {0, 16};
  CHECK(aclrtLaunchKernelWithHostArgs(sum_of, 1, stream, nullptr, &with_data, sizeof with_data, &place, 1));
  int32_t total = 0;
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtMemcpy(&total, sizeof total, y, sizeof total, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT(total == 10);

  // Arguments one by one.
  aclrtArgsHandle args = nullptr;
  aclrtParamHandle param = nullptr;
  CHECK(aclrtKernelArgsInit(sum_of, &args));
  CHECK(aclrtKernelArgsAppendPlaceHolder(args, &param));
  void* buffer = nullptr;
  CHECK(aclrtKernelArgsGetPlaceHolderBuffer(args, param, sizeof with_data.data, &buffer));
  const int32_t data[4] = {10, 20, 30, 40};
  std::memcpy(buffer, data, sizeof data);
  CHECK(aclrtKernelArgsAppend(args, &y, sizeof y, &param));
  CHECK(aclrtKernelArgsFinalize(args));
  CHECK(aclrtLaunchKernelWithConfig(sum_of, 1, stream, nullptr, args, nullptr));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtMemcpy(&total, sizeof total, y, sizeof total, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT(total == 100);

  // A template instance.
  std::vector<int32_t> numbers(kCount, 7);
  CHECK(aclrtMemcpy(x, kBytes, numbers.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(aclrtLaunchKernelWithArgsArray(scale_int, 2, stream, nullptr, pointers));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtMemcpy(numbers.data(), kBytes, y, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT(numbers[0] == 17 && numbers[kCount - 1] == 17);

  // A failing kernel: the launch succeeds, the synchronization fails once, and the stream goes on.
  void* one[] = {&y};
  CHECK(aclrtLaunchKernelWithArgsArray(out_of_bounds, 1, stream, nullptr, one));
  EXPECT(aclrtSynchronizeStream(stream) == ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT(std::strstr(aclGetRecentErrMsg(), "out_of_bounds") != nullptr);
  CHECK(aclrtSynchronizeStream(stream));

  // Misuse is refused with a text.
  EXPECT(aclrtMemcpy(y, kBytes, host, kBytes + 1, ACL_MEMCPY_HOST_TO_DEVICE) != ACL_SUCCESS);
  EXPECT(aclrtMemcpy(host, kBytes, host, kBytes, ACL_MEMCPY_DEVICE_TO_HOST) != ACL_SUCCESS);
  EXPECT(std::strlen(aclGetRecentErrMsg()) > 0);
  EXPECT(aclrtSetDevice(7) == ACL_ERROR_RT_INVALID_DEVICEID);

  CHECK(aclrtBinaryUnLoad(module));
  EXPECT(aclrtLaunchKernelWithArgsArray(scale, 1, stream, nullptr, pointers) == ACL_ERROR_RT_INVALID_HANDLE);
  CHECK(aclrtDestroyEvent(start));
  CHECK(aclrtDestroyEvent(end));
  CHECK(aclrtFree(device_block));
  CHECK(aclrtFree(x));
  CHECK(aclrtFree(y));
  EXPECT(aclrtFree(y) != ACL_SUCCESS);
  CHECK(aclrtFreeHost(host));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  CHECK(aclrtcDestroyProg(&program));
  std::printf("modelled %.3f us\nall checks passed\n", static_cast<double>(milliseconds) * 1e3);
  return 0;
}
