// How a program with <<<>>> launches runs on the virtual NPU: the launch goes through the runtime, to the kernel of the
// binary that AOT_BINARY names. What the virtual NPU tells of every launch goes to the file AOT_REPORTS, a line each.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_rt.h"

extern "C" const char* vnpu_last_report();

struct DirectLaunch {
  const char* name;
  uint32_t blocks;
  aclrtStream stream;

  template <typename... A>
  void operator()(A... arguments) const {
    std::vector<uint8_t> block;
    (append(block, arguments), ...);
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle function = nullptr;
    aclrtBinaryLoadOption option{ACL_RT_BINARY_LOAD_OPT_MAGIC, {}};
    option.value.magic = ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE;
    aclrtBinaryLoadOptions options{&option, 1};
    check(aclrtBinaryLoadFromFile(std::getenv("AOT_BINARY"), &options, &binary));
    check(aclrtBinaryGetFunction(binary, name, &function));
    check(aclrtLaunchKernel(function, blocks, block.data(), block.size(), stream));
    check(aclrtSynchronizeStream(stream));
    if (const char* reports = std::getenv("AOT_REPORTS"))
      std::ofstream(reports, std::ios::app) << vnpu_last_report() << "\n";
  }

 private:
  template <typename T>
  static void append(std::vector<uint8_t>& block, const T& value) {
    constexpr size_t alignment = sizeof(T) >= 8 ? 8 : sizeof(T) >= 4 ? 4 : sizeof(T);
    block.resize((block.size() + alignment - 1) / alignment * alignment + sizeof(T));
    std::memcpy(&block[block.size() - sizeof(T)], &value, sizeof(T));
  }
  static void check(aclError code) {
    if (code == ACL_SUCCESS) return;
    std::fprintf(stderr, "launch failed: %s\n", aclGetRecentErrMsg());
    std::_Exit(3);
  }
};
