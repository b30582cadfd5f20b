// A case that is served: what its calls look like, and what is launched for them.
#pragma once
#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ascendopt_tune {

using Launch = int (*)(void*, uint32_t, void*, void*, void**, void*);
using Shape = std::vector<int64_t>;
using Form = std::pair<Shape, int>;  // of a contiguous tensor: shape, dtype as torch numbers them
// What a key says of one argument: None, a tensor's form, or a value. bool stands before int64_t: Python's True is an
// int.
using Part = std::variant<std::monostate, Form, bool, int64_t, double, std::string, Shape, std::vector<double>>;
using Tensors = c10::SmallVector<const at::Tensor*, 12>;  // by number of the argument; null for others
using Made = c10::SmallVector<at::Tensor, 4>;

// Where an output of the kernel goes.
struct Output {
  enum Place { kNew, kInto, kCopiedInto, kOver };
  int place;      // a new tensor; argument's memory; a new tensor, copied over argument; argument, which it reads, too
  int argument;   // -1 for kNew
  bool is_given;  // it is a parameter of the kernel
  Form form;
  std::optional<double> fill;  // what it holds before the launch
};

struct Case {
  std::vector<Part> key;
  c10::Device device{c10::DeviceType::PrivateUse1, 0};
  bool several = false;  // there are more devices than this one
  void* function = nullptr;
  uint32_t block_dim = 0;
  Launch launch = nullptr;
  void* tiling = nullptr;
  int64_t workspace_bytes = 0;  // with the system's part before it; 0: the system's area is what there is
  int64_t system_bytes = 0;     // the system's part
  std::vector<int> inputs;      // per parameter of the kernel: number of the argument, or -1 for a null pointer
  std::vector<Output> outputs;
  std::vector<int> returned;            // numbers of outputs, or -1 - number of an argument
  std::vector<int> changed;             // arguments
  std::vector<int> beside;              // arguments that must not share memory with those
  bool serving = false;                 // it is in a table
  std::atomic<int64_t> calls{0};        // served here
  std::atomic<int64_t> due{INT64_MAX};  // from this call on they are Python's, which samples one and sets this anew
  std::atomic<int> code{0};             // of a launch that failed, for Python, which is called next

  bool is_due() const { return calls.load(std::memory_order_relaxed) >= due.load(std::memory_order_relaxed); }
};

inline std::shared_ptr<Case> make_case(std::vector<Part> key, int device, bool several, uintptr_t function,
                                       uint32_t block_dim, uintptr_t launch, uintptr_t tiling, int64_t workspace_bytes,
                                       int64_t system_bytes, std::vector<int> inputs, std::vector<Output> outputs,
                                       std::vector<int> returned) {
  auto value = std::make_shared<Case>();
  value->key = std::move(key);
  value->device = c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device));
  value->several = several;
  value->function = reinterpret_cast<void*>(function);
  value->block_dim = block_dim;
  value->launch = reinterpret_cast<Launch>(launch);
  value->tiling = reinterpret_cast<void*>(tiling);
  value->workspace_bytes = workspace_bytes;
  value->system_bytes = system_bytes;
  value->inputs = std::move(inputs);
  value->outputs = std::move(outputs);
  value->returned = std::move(returned);
  for (const Output& output : value->outputs) {
    if (output.argument >= 0) {
      value->changed.push_back(output.argument);
    }
  }
  if (!value->changed.empty()) {
    value->beside = value->changed;
    std::copy_if(value->inputs.begin(), value->inputs.end(), std::back_inserter(value->beside),
                 [](int number) { return number >= 0; });
  }
  return value;
}

}  // namespace ascendopt_tune
