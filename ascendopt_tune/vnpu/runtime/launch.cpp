// The launch forms. All of them end in one: pointers to the parameters' values.
//
// A kernel that fails does so on its stream: the launch succeeds, and the next synchronizing call reports the failure.
#include <algorithm>
#include <cstring>

#include "kernel.h"
#include "mspti.h"
#include "state.h"

namespace vnpu_acl {
namespace {

// The number of an attribute, which may be none that the enumeration has.
int id_of(const aclrtLaunchKernelAttr& attribute) {
  static_assert(sizeof attribute.id == sizeof(int));
  int id;
  memcpy(&id, &attribute.id, sizeof id);
  return id;
}

int check_config(const char* caller, const aclrtLaunchKernelCfg* config) {
  for (size_t i = 0; config != nullptr && i < config->numAttrs; ++i) {
    const aclrtLaunchKernelAttr& attribute = config->attrs[i];
    const int id = id_of(attribute);
    if (id == vnpu::kOptionsAttribute) continue;
    const bool changes_result =
        (id == ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE && attribute.value.dynUBufSize != 0) ||
        (id == ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET && attribute.value.blockDimOffset != 0);
    if (changes_result || id < ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE || id > ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US) {
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: launch attribute %d is not modelled", caller, id);
    }
  }
  return ACL_SUCCESS;
}

// What the machine is told about this launch alone; the usual where nothing is.
vnpu::LaunchOptions options_of(const aclrtLaunchKernelCfg* config) {
  for (size_t i = 0; config != nullptr && i < config->numAttrs; ++i) {
    if (id_of(config->attrs[i]) != vnpu::kOptionsAttribute) continue;
    const vnpu::LaunchOptions* options = nullptr;
    memcpy(&options, &config->attrs[i].value, sizeof options);
    if (options != nullptr) return *options;
  }
  return {};
}

// A device copy of an argument block, so that placeholders point at memory a kernel may read.
class DeviceBlock {
 public:
  explicit DeviceBlock(size_t size) {
    code_ = aclrtMalloc(&data_, std::max<size_t>(size, 32), ACL_MEM_MALLOC_HUGE_FIRST);
  }
  ~DeviceBlock() {
    if (code_ == ACL_SUCCESS) aclrtFree(data_);
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  int code() const { return code_; }
  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
  int code_ = ACL_SUCCESS;
};

// The parameters that may be addresses.
std::vector<uintptr_t> addresses_in(const Function& function, void** args) {
  std::vector<uintptr_t> out;
  for (uint32_t i = 0; i < function.info->param_count; ++i) {
    if (function.info->param_sizes[i] != sizeof(uintptr_t)) continue;
    out.emplace_back();
    memcpy(&out.back(), args[i], sizeof(uintptr_t));
  }
  return out;
}

}  // namespace

int launch(const char* caller, const Function& function, uint32_t blocks, aclrtStream stream,
           const aclrtLaunchKernelCfg* config, void** args, bool at_once) {
  if (const int code = check_config(caller, config)) return code;
  if (args == nullptr && function.info->param_count > 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: kernel %s has %u parameters, no arguments were given", caller,
                function.name.c_str(), function.info->param_count);
  }
  {
    const std::lock_guard<std::mutex> lock(state_mutex());
    if (find_stream(stream) == nullptr) return bad_stream(caller);
  }
  const uint64_t issued_ns = kernel_records_wanted() ? record_clock_ns() : 0;
  vnpu::LaunchResult result =
      vnpu::launch(*function.info, blocks, args, function.binary->variables, options_of(config));
  const bool refused = result.status != 0 && result.status < ACL_ERROR_RT_INTERNAL_ERROR;  // never started
  if (refused) return fail_text(result.status, std::string(caller) + ": " + result.message);
  const std::lock_guard<std::mutex> lock(state_mutex());
  Stream* found = find_stream(stream);
  if (found == nullptr) return bad_stream(caller);
  advance(*found, result.task_duration_us);
  if (issued_ns != 0) record_kernel(function.name, *function.info, found->id, issued_ns, result.task_duration_us);
  if (result.status == 0) return ACL_SUCCESS;
  const std::string message = "kernel " + function.name + ": " + result.message;
  if (at_once) return fail_text(result.status, message);
  note_failure(message, addresses_in(function, args));
  if (!found->failure) found->failure = Failure{result.status, message};
  return ACL_SUCCESS;
}

int launch_packed(const char* caller, const Function& function, uint32_t blocks, aclrtStream stream,
                  const aclrtLaunchKernelCfg* config, void* block, size_t size) {
  const std::vector<ParamPlace> places = param_places(function);
  const size_t needed = places.empty() ? 0 : places.back().offset + places.back().size;
  if (needed > size || (needed > 0 && block == nullptr)) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: kernel %s takes %zu bytes of arguments, %zu were given", caller,
                function.name.c_str(), needed, block == nullptr ? size_t{0} : size);
  }
  std::vector<void*> args;
  for (const ParamPlace& place : places) args.push_back(static_cast<char*>(block) + place.offset);
  return launch(caller, function, blocks, stream, config, args.data());
}

}  // namespace vnpu_acl

using namespace vnpu_acl;

aclError aclrtLaunchKernelWithArgsArray(void* handle, uint32_t blocks, aclrtStream stream, aclrtLaunchKernelCfg* config,
                                        void** args) {
  const Function* function = find_function(handle, "aclrtLaunchKernelWithArgsArray");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  return launch("aclrtLaunchKernelWithArgsArray", *function, blocks, stream, config, args);
}

// As aclrtLaunchKernelWithArgsArray, but a kernel that fails is this call's error and leaves its stream as it was: for
// whoever has another kernel to serve the call with. On a stream that failed nothing is launched.
VNPU_ACL_EXPORT int vnpu_launch_at_once(void* handle, uint32_t blocks, void* stream, void*, void** args, void*) {
  const Function* function = find_function(handle, "vnpu_launch_at_once");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  {
    const std::lock_guard<std::mutex> lock(state_mutex());
    const Stream* on = find_stream(stream);
    if (on != nullptr && on->failure) return fail_text(ACL_ERROR_RT_STREAM_CONTEXT, on->failure->message);
  }
  return launch("vnpu_launch_at_once", *function, blocks, stream, nullptr, args, true);
}

aclError aclrtLaunchKernelV2(aclrtFuncHandle handle, uint32_t blocks, const void* args, size_t size,
                             aclrtLaunchKernelCfg* config, aclrtStream stream) {
  const Function* function = find_function(handle, "aclrtLaunchKernel");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  return launch_packed("aclrtLaunchKernel", *function, blocks, stream, config, const_cast<void*>(args), size);
}

aclError aclrtLaunchKernel(aclrtFuncHandle handle, uint32_t blocks, const void* args, size_t size, aclrtStream stream) {
  return aclrtLaunchKernelV2(handle, blocks, args, size, nullptr, stream);
}

aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle handle, uint32_t blocks, aclrtStream stream,
                                       aclrtLaunchKernelCfg* config, void* host_args, size_t size,
                                       aclrtPlaceHolderInfo* placeholders, size_t placeholder_count) {
  const char* const caller = "aclrtLaunchKernelWithHostArgs";
  const Function* function = find_function(handle, caller);
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  if (placeholder_count == 0) return launch_packed(caller, *function, blocks, stream, config, host_args, size);
  if (host_args == nullptr || placeholders == nullptr)
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: null pointer", caller);
  const DeviceBlock block(size);
  if (block.code() != ACL_SUCCESS) return block.code();
  memcpy(block.data(), host_args, size);
  for (size_t i = 0; i < placeholder_count; ++i) {
    const aclrtPlaceHolderInfo& place = placeholders[i];
    if (place.addrOffset + sizeof(void*) > size || place.dataOffset > size) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: placeholder %zu lies outside the %zu bytes of arguments", caller, i,
                  size);
    }
    const char* const data = block.data() + place.dataOffset;
    memcpy(block.data() + place.addrOffset, &data, sizeof data);
  }
  return launch_packed(caller, *function, blocks, stream, config, block.data(), size);
}

namespace {

struct Param {
  std::string value;  // the bytes of the argument; of the data it points to, for a placeholder
  bool placeholder = false;
};

struct Args {
  const Function* function;
  std::vector<std::unique_ptr<Param>> params;
  bool complete = false;
};

Args* args_of(aclrtArgsHandle handle) { return static_cast<Args*>(handle); }

Param* add_param(Args* args, aclrtParamHandle* handle) {
  if (args->params.size() >= args->function->info->param_count) return nullptr;
  args->params.push_back(std::make_unique<Param>());
  if (handle != nullptr) *handle = args->params.back().get();
  return args->params.back().get();
}

int too_many(const Args& args) {
  return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtKernelArgsAppend: kernel %s has %u parameters",
              args.function->name.c_str(), args.function->info->param_count);
}

int null_handle() { return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtKernelArgs: a handle or pointer is null"); }

}  // namespace

aclError aclrtKernelArgsInit(aclrtFuncHandle handle, aclrtArgsHandle* args) {
  const Function* function = find_function(handle, "aclrtKernelArgsInit");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  *args = new Args{function, {}, false};
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsAppend(aclrtArgsHandle handle, void* value, size_t size, aclrtParamHandle* param) {
  if (handle == nullptr || value == nullptr) return null_handle();
  Args* args = args_of(handle);
  const size_t index = args->params.size();
  Param* added = add_param(args, param);
  if (added == nullptr) return too_many(*args);
  const size_t expected = args->function->info->param_sizes[index];
  if (size != expected) {
    args->params.pop_back();
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtKernelArgsAppend: parameter %zu of %s has %zu bytes, %zu were given",
                index, args->function->name.c_str(), expected, size);
  }
  added->value.assign(static_cast<const char*>(value), size);
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle handle, aclrtParamHandle* param) {
  if (handle == nullptr || param == nullptr) return null_handle();
  Param* added = add_param(args_of(handle), param);
  if (added == nullptr) return too_many(*args_of(handle));
  added->placeholder = true;
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle handle, aclrtParamHandle param, size_t size,
                                             void** buffer) {
  if (handle == nullptr || param == nullptr || buffer == nullptr) return null_handle();
  auto* placeholder = static_cast<Param*>(param);
  if (!placeholder->placeholder) return fail(ACL_ERROR_RT_PARAM_INVALID, "the parameter is not a placeholder");
  placeholder->value.resize(size);
  *buffer = placeholder->value.data();
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle handle, aclrtParamHandle param, void* value, size_t size) {
  if (handle == nullptr || param == nullptr || value == nullptr) return null_handle();
  auto* updated = static_cast<Param*>(param);
  if (updated->placeholder || size != updated->value.size()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtKernelArgsParaUpdate: the parameter has %zu bytes, %zu were given",
                updated->value.size(), size);
  }
  updated->value.assign(static_cast<const char*>(value), size);
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle handle) {
  if (handle == nullptr) return null_handle();
  Args* args = args_of(handle);
  const uint32_t expected = args->function->info->param_count;
  if (args->params.size() != expected) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtKernelArgsFinalize: kernel %s has %u parameters, %zu were appended",
                args->function->name.c_str(), expected, args->params.size());
  }
  args->complete = true;
  return ACL_SUCCESS;
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle handle, uint32_t blocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg* config, aclrtArgsHandle args_handle, void*) {
  const char* const caller = "aclrtLaunchKernelWithConfig";
  const Function* function = find_function(handle, caller);
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  if (args_handle == nullptr) return null_handle();
  // There is no call that frees the handle; the launch takes it, whatever its outcome.
  const std::unique_ptr<Args> args(args_of(args_handle));
  if (!args->complete || args->function != function) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the arguments are not finalized, or belong to another kernel", caller);
  }
  std::vector<std::unique_ptr<DeviceBlock>> blocks_of_data;
  std::vector<char*> addresses(args->params.size());
  std::vector<void*> values;
  for (size_t i = 0; i < args->params.size(); ++i) {
    Param& param = *args->params[i];
    if (!param.placeholder) {
      values.push_back(param.value.data());
      continue;
    }
    blocks_of_data.push_back(std::make_unique<DeviceBlock>(param.value.size()));
    if (blocks_of_data.back()->code() != ACL_SUCCESS) return blocks_of_data.back()->code();
    addresses[i] = blocks_of_data.back()->data();
    memcpy(addresses[i], param.value.data(), param.value.size());
    values.push_back(&addresses[i]);
  }
  return launch(caller, *function, blocks, stream, config, values.data());
}
