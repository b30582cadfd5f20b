// Launches of a program whose kernels are templates: each has a name for the function and the types it is called with,
// and the program says them, instead of running, when the environment has AOT_LIST.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "direct_program.h"

inline std::map<std::string, std::string>& catlass_kernels() {
  static std::map<std::string, std::string> kernels;
  return kernels;
}

// Function::text is the function's own text.
template <typename Function, typename... Types>
struct CatlassKernel {
  static std::string types() {
    const std::string text = __PRETTY_FUNCTION__;  // ... [with Function = F; Types = {A, B}; ...]
    const std::string before = "Types = {";
    const size_t begin = text.find(before) + before.size();
    return text.substr(begin, text.find("}; ", begin) - begin);
  }
  static std::string add() {
    const std::string called = std::string(Function::text()) + "|" + types();
    const std::string name = "kernel_" + std::to_string(std::hash<std::string>{}(called));
    catlass_kernels()[name] = called;
    return name;
  }
  static inline const std::string name = add();
};

template <typename Function>
struct CatlassLaunch {
  uint32_t blocks;
  aclrtStream stream;

  template <typename... Types>
  void operator()(Types... arguments) const {
    DirectLaunch{CatlassKernel<Function, Types...>::name.c_str(), blocks, stream}(arguments...);
  }
};

// catlass' own kernel, of an operator.
template <typename Operator>
struct CatlassAdapter {
  static std::string text() {
    const std::string text = __PRETTY_FUNCTION__;  // ... [with Operator = O; ...]
    const std::string before = "Operator = ";
    const size_t begin = text.find(before) + before.size();
    return "Catlass::KernelAdapter<" + text.substr(begin, text.find("; std::string", begin) - begin) + ">";
  }
};

// The program's own main comes behind this header, under another name.
int catlass_main(int argc, const char** argv);
int main(int argc, const char** argv) {
  if (std::getenv("AOT_LIST") == nullptr) return catlass_main(argc, argv);
  for (const auto& [name, text] : catlass_kernels()) std::printf("%s|%s\n", name.c_str(), text.c_str());
  return 0;
}
#define main catlass_main
