// Calls through torch's dispatcher.
#pragma once
#include "table.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace ascendopt_tune {

// The kernel over the hook.
class Kernel final : public c10::OperatorKernel {
 public:
  Kernel(std::shared_ptr<Table> table, c10::SafeKernelFunction hook)
      : table_(std::move(table)), hook_(std::move(hook)) {}

  ~Kernel() override {
    if (Py_IsInitialized() == 0) {  // torch's dispatcher outlives Python: what Python owned is not given back any more
      new std::shared_ptr<Table>(std::move(table_));
      return;
    }
    const py::gil_scoped_acquire lock;
    table_.reset();
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    // The registration may end while this runs.
    const auto self = c10::intrusive_ptr<Kernel>::unsafe_reclaim_from_nonowning(this);
    const size_t count = op.schema().arguments().size();
    const auto arguments = torch::jit::last(*stack, count);
    std::shared_ptr<Case> found;
    Tensors tensors;
    Made made;
    bool launched = false;
    try {
      void* area = nullptr;
      found = table_->find(arguments, area);
      if (found != nullptr) {
        for (const c10::IValue& value : arguments) {
          tensors.push_back(value.isTensor() ? &value.toTensor() : nullptr);
        }
        launched = Table::launch(*found, tensors, area, made);
      }
    } catch (const std::exception&) {
      // Nothing was launched: the hook meets the same, counts it, and has the original serve.
    }
    if (launched) {
      Table::finish(*found, tensors, made);
      c10::SmallVector<at::Tensor, 4> results;
      for (int number : found->returned) {
        results.push_back(number < 0 ? *tensors[static_cast<size_t>(-1 - number)] : made[static_cast<size_t>(number)]);
      }
      torch::jit::drop(*stack, count);
      for (at::Tensor& result : results) {
        torch::jit::push(*stack, std::move(result));
      }
      return;
    }
    made.clear();
    hook_.callBoxed(op, keys, stack);
  }

 private:
  std::shared_ptr<Table> table_;
  c10::SafeKernelFunction hook_;
};

// The registration of a Kernel over the kernel that an operator has at the time; ends with `undo`.
class Override {
 public:
  Override(const std::string& name, const std::string& overload, std::shared_ptr<Table> table) {
    class Mute : public c10::WarningHandler {
      void process(const c10::Warning&) override {}
    } mute;
    const c10::WarningUtils::WarningHandlerGuard guard(&mute);  // torch warns about every override
    auto& dispatcher = c10::Dispatcher::singleton();
    const auto op = dispatcher.findSchemaOrThrow(name.c_str(), overload.c_str());
    auto kernel = std::make_unique<Kernel>(std::move(table), op.getComputedKernelForDispatchKey(kKey));
    static std::atomic<int> number{0};
    registration_.emplace(dispatcher.registerImpl(
        op.operator_name(), kKey, c10::KernelFunction::makeFromBoxedFunctor(std::move(kernel)), std::nullopt, nullptr,
        "the fast path of ascendopt_tune, number " + std::to_string(number++)));
  }

  void undo() { registration_.reset(); }

 private:
  static constexpr c10::DispatchKey kKey = c10::DispatchKey::PrivateUse1;
  std::optional<c10::RegistrationHandleRAII> registration_;
};

}  // namespace ascendopt_tune
