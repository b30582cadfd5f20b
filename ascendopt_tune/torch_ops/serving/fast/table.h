// The cases of one operator: which one serves a call, and how it is launched.
#pragma once
#include "arguments.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/core/grad_mode.h>
#include <torch_npu/csrc/core/npu/NPUFunctions.h>
#include <torch_npu/csrc/core/npu/NPUStream.h>

#include <unordered_map>

namespace ascendopt_tune {

namespace py = pybind11;

inline constexpr uintptr_t kAlignment = 32;  // bytes, launcher.ALIGNMENT

// What one tuned operator serves.
class Table {
 public:
  // environment, kill: the process's environment as a dict, and the kill switch's name in it. scope: the context
  // variable of the policy. area_of(device, stream): the address of the system's area. grad: calls in which a gradient
  // is wanted are the hook's.
  Table(py::dict environment, py::object kill, py::object scope, py::object area_of, bool grad)
      : environment_(std::move(environment)),
        kill_(std::move(kill)),
        scope_(std::move(scope)),
        area_of_(std::move(area_of)),
        grad_(grad) {}

  void put(std::shared_ptr<Case> value) {
    if (value->serving) {
      return;
    }
    value->serving = true;
    cases_[hash_of(value->key)].push_back(std::move(value));
  }

  void remove(const std::shared_ptr<Case>& value) {
    value->serving = false;
    const auto found = cases_.find(hash_of(value->key));
    if (found == cases_.end()) {
      return;
    }
    auto& list = found->second;
    list.erase(std::remove(list.begin(), list.end(), value), list.end());
    if (list.empty()) {
      cases_.erase(found);
    }
  }

  // The case that serves the call; null: the hook has to. Called without the interpreter lock.
  std::shared_ptr<Case> find(c10::ArrayRef<c10::IValue> arguments, void*& area) {
    size_t hash = 0;
    if (!hash_of(arguments, grad_ && c10::GradMode::is_enabled(), hash)) {
      return nullptr;
    }
    const py::gil_scoped_acquire lock;
    const auto found = cases_.find(hash);
    if (found == cases_.end() || is_left_to_python()) {
      return nullptr;
    }
    for (const auto& value : found->second) {
      if (value->key.size() == arguments.size() && std::equal(value->key.begin(), value->key.end(), arguments.begin(),
                                                              [&](const Part& part, const c10::IValue& argument) {
                                                                return is(part, argument, value->device);
                                                              })) {
        if (is_elsewhere(*value) || value->is_due()) {
          return nullptr;
        }
        std::shared_ptr<Case> kept = value;  // area_now may let other threads change the table
        area = area_now(kept->device);
        return kept;
      }
    }
    return nullptr;
  }

  static bool is_elsewhere(const Case& value) {
    return value.several && c10_npu::current_device() != value.device.index();
  }

  // The kill switch, or a policy of a `with` block. Called under the interpreter lock.
  bool is_left_to_python() const {
    PyObject* policy = nullptr;
    if (PyDict_Contains(environment_.ptr(), kill_.ptr()) != 0 || PyContextVar_Get(scope_.ptr(), Py_None, &policy) < 0) {
      PyErr_Clear();
      return true;
    }
    Py_DECREF(policy);  // the variable, or the interpreter, holds it
    return policy != Py_None;
  }

  // The system's area for the device's current stream. Called under the interpreter lock.
  void* area_now(c10::Device device) {
    void* const stream = c10_npu::getCurrentNPUStream(device.index()).stream(false);
    const auto found = areas_.find(stream);
    if (found != areas_.end()) {
      return found->second;
    }
    return areas_[stream] = reinterpret_cast<void*>(
               area_of_(static_cast<int>(device.index()), reinterpret_cast<uintptr_t>(stream)).cast<uintptr_t>());
  }

  // Launches, and leaves the kernel's outputs in `made`; false, or torch's error, if nothing was launched.
  static bool launch(Case& value, const Tensors& arguments, void* area, Made& made) {
    c10::SmallVector<void*, 16> words;
    uintptr_t bits = 0;
    const auto add = [&](const at::Tensor& tensor) {
      words.push_back(tensor.data_ptr());
      bits |= reinterpret_cast<uintptr_t>(words.back());
    };
    for (int number : value.inputs) {
      if (number < 0) {
        words.push_back(nullptr);
      } else {
        add(*arguments[static_cast<size_t>(number)]);
      }
    }
    for (const Output& output : value.outputs) {
      if (output.place == Output::kNew || output.place == Output::kCopiedInto) {
        const auto dtype = static_cast<at::ScalarType>(output.form.second);
        made.push_back(at::empty(output.form.first, at::device(value.device).dtype(dtype)));
      } else {
        made.push_back(*arguments[static_cast<size_t>(output.argument)]);
      }
      if (output.is_given) {
        add(made.back());
      }
    }
    if (bits % kAlignment != 0 || has_overlap(value, arguments) || has_neighbour(value, arguments)) {
      return false;
    }
    for (size_t i = 0; i < made.size(); ++i) {
      if (value.outputs[i].fill) {
        made[i].fill_(*value.outputs[i].fill);
      }
    }
    void* const stream =
        c10_npu::getCurrentNPUStream(value.device.index()).stream();  // waits for torch_npu's task queue
    at::Tensor workspace;  // dropped at the end, and used again in the stream's order, so after the launch
    if (value.workspace_bytes > 0) {
      workspace = at::empty({value.workspace_bytes}, at::device(value.device).dtype(at::kByte));
      words.push_back(static_cast<char*>(workspace.data_ptr()) + value.system_bytes);
    } else {
      words.push_back(area);
    }
    words.push_back(value.tiling);
    c10::SmallVector<void*, 16> pointers;
    for (void*& word : words) {
      pointers.push_back(&word);
    }
    value.code = value.launch(value.function, value.block_dim, stream, nullptr, pointers.data(), nullptr);
    return value.code == 0;
  }

  // After a launch: copies results over the arguments they replace, tells autograd what changed, counts.
  static void finish(Case& value, const Tensors& arguments, const Made& made) {
    for (size_t i = 0; i < made.size(); ++i) {
      if (value.outputs[i].place == Output::kCopiedInto) {
        const at::AutoDispatchBelowAutograd guard;
        arguments[static_cast<size_t>(value.outputs[i].argument)]->copy_(made[i]);
      }
    }
    for (int number : value.changed) {
      const at::Tensor& tensor = *arguments[static_cast<size_t>(number)];
      if (!tensor.is_inference()) {
        tensor.unsafeGetTensorImpl()->bump_version();
      }
    }
    value.calls.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  static bool has_overlap(const Case& value, const Tensors& arguments) {
    const auto begin = [&](int number) {
      return static_cast<const char*>(arguments[static_cast<size_t>(number)]->data_ptr());
    };
    const auto end = [&](int number) { return begin(number) + arguments[static_cast<size_t>(number)]->nbytes(); };
    for (int changed : value.changed) {
      for (int other : value.beside) {
        if (changed != other && begin(changed) < end(other) && begin(other) < end(changed)) {
          return true;
        }
      }
    }
    return false;
  }

  // Whether a tensor of the caller's ends inside a block that a neighbour's bytes are in, too.
  static bool has_neighbour(const Case& value, const Tensors& arguments) {
    return std::any_of(value.outputs.begin(), value.outputs.end(), [&](const Output& output) {
      if (output.place != Output::kInto && output.place != Output::kOver) {
        return false;
      }
      const at::Tensor& tensor = *arguments[static_cast<size_t>(output.argument)];
      const size_t begin = static_cast<size_t>(tensor.storage_offset()) * tensor.itemsize();
      return tensor.nbytes() % kAlignment != 0 && begin + tensor.nbytes() < tensor.storage().nbytes();
    });
  }

  py::dict environment_;
  py::object kill_, scope_, area_of_;
  bool grad_;
  // Both under the interpreter lock.
  std::unordered_map<size_t, std::vector<std::shared_ptr<Case>>> cases_;
  std::unordered_map<void*, void*> areas_;
};

}  // namespace ascendopt_tune
