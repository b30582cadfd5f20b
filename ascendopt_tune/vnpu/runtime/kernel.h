// Kernel binaries of the virtual NPU and their functions, as the launch forms need them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../core/launch.h"
#include "acl/acl_rt.h"

namespace vnpu_acl {

struct Binary;

struct Function {
  Binary* binary;
  std::string name;
  const vnpu::KernelInfo* info;
};

struct Binary {
  void* library = nullptr;
  std::vector<void*> constants;  // its read-only data, known to the machine as global memory
  bool variables = false;        // whether it has any, which its kernels share
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// The function of a handle, or nullptr (the error is set).
Function* find_function(const void* handle, const char* caller);

struct ParamPlace {
  size_t offset;
  size_t size;
};
// Where the parameters lie in a packed argument block: each at its natural alignment, at most 8.
std::vector<ParamPlace> param_places(const Function& function);

// Checks grid, stream and configuration, runs the kernel, charges the stream. args[i] points at parameter i. A kernel
// that fails does so on its stream, or, `at_once`, as this call.
int launch(const char* caller, const Function& function, uint32_t blocks, aclrtStream stream,
           const aclrtLaunchKernelCfg* config, void** args, bool at_once = false);
// The same from a packed block in host or device memory.
int launch_packed(const char* caller, const Function& function, uint32_t blocks, aclrtStream stream,
                  const aclrtLaunchKernelCfg* config, void* block, size_t size);

}  // namespace vnpu_acl
