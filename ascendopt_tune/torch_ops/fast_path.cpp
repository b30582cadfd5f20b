// Hits without Python: a kernel over the hook of intercept.py, and what a compiled graph's node calls (bound.py).
// Compiled by fast_build.py, filled by fast_path.py.
//
// A call whose case is known is launched here; every other one goes to Python with its arguments untouched, and so does
// one that can't be launched, for Python to try, count and have the original serve. Tables are read and changed under
// Python's interpreter lock; it is also what the kill switch (a name in the environment) and the policy of a `with`
// block (a context variable) are asked under, so both work from the very next call on. Allocation and launch don't hold
// it.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch_npu/csrc/core/npu/NPUFormat.h>
#include <torch_npu/csrc/core/npu/NPUFunctions.h>
#include <torch_npu/csrc/core/npu/NPUStream.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace py = pybind11;

namespace {

constexpr uintptr_t kAlignment = 32;  // bytes, launcher.ALIGNMENT

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
  std::vector<int> returned;      // numbers of outputs, or -1 - number of an argument
  std::vector<int> changed;       // arguments
  std::vector<int> beside;        // arguments that must not share memory with those
  bool serving = false;           // it is in a table
  std::atomic<int64_t> calls{0};  // served here
};

void mix(size_t& hash, size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29); }

void mix_shape(size_t& hash, c10::IntArrayRef shape) {
  for (int64_t n : shape) {
    mix(hash, static_cast<size_t>(n));
  }
}

// Of the shapes and of each argument's kind; values are compared.
size_t hash_of(const std::vector<Part>& key) {
  size_t hash = key.size();
  for (const Part& part : key) {
    mix(hash, part.index());
    if (const auto* form = std::get_if<Form>(&part)) {
      mix_shape(hash, form->first);
    }
  }
  return hash;
}

// Whether elements lie in the order of their indices: of torch_npu's formats NCHW, ND and NCDHW (acl_base.h).
bool is_plain(const at::Tensor& tensor) {
  const int64_t format = at_npu::native::get_npu_format(tensor);
  return format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCDHW;
}

bool is_servable(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1 &&
         tensor.layout() == at::kStrided && tensor.is_contiguous() && is_plain(tensor);
}

bool has_form(const at::Tensor& tensor, const Form& form, c10::Device device) {
  return tensor.device() == device && tensor.sizes() == c10::IntArrayRef(form.first) &&
         static_cast<int>(tensor.scalar_type()) == form.second;
}

// As hash_of for arguments on the stack; false for a call that no key stands for.
bool hash_of(c10::ArrayRef<c10::IValue> arguments, bool grad, size_t& hash) {
  hash = arguments.size();
  for (const c10::IValue& value : arguments) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (!is_servable(tensor) || (grad && tensor.requires_grad())) {
        return false;
      }
      mix(hash, 1);
      mix_shape(hash, tensor.sizes());
    } else if (value.isNone()) {
      mix(hash, 0);
    } else if (value.isBool()) {
      mix(hash, 2);
    } else if (value.isInt()) {
      mix(hash, 3);
    } else if (value.isDouble()) {
      mix(hash, 4);
    } else if (value.isString()) {
      mix(hash, 5);
    } else if (value.isIntList()) {
      mix(hash, 6);
    } else if (value.isDoubleList()) {
      mix(hash, 7);
    } else {
      return false;
    }
  }
  return true;
}

template <typename List, typename Values>
bool is_list(const List& list, const Values& values) {
  return list.size() == values.size() && std::equal(values.begin(), values.end(), list.begin());
}

bool is(const Part& part, const c10::IValue& value, c10::Device device) {
  switch (part.index()) {
    case 0:
      return value.isNone();
    case 1:
      return value.isTensor() && has_form(value.toTensor(), std::get<Form>(part), device);
    case 2:
      return value.isBool() && value.toBool() == std::get<bool>(part);
    case 3:
      return value.isInt() && value.toInt() == std::get<int64_t>(part);
    case 4:
      return value.isDouble() && value.toDouble() == std::get<double>(part);
    case 5:
      return value.isString() && value.toStringRef() == std::get<std::string>(part);
    case 6:
      return value.isIntList() && is_list(value.toIntList(), std::get<Shape>(part));
    default:
      return value.isDoubleList() && is_list(value.toDoubleList(), std::get<std::vector<double>>(part));
  }
}

template <typename Value>
bool is_sequence(PyObject* value, const std::vector<Value>& wanted, bool (*is)(PyObject*, Value)) {
  if (!PyList_Check(value) && !PyTuple_Check(value)) {
    return false;
  }
  PyObject* const* const items = PySequence_Fast_ITEMS(value);
  const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(value));
  return count == wanted.size() &&
         std::equal(wanted.begin(), wanted.end(), items, [is](Value value, PyObject* item) { return is(item, value); });
}

bool is_int(PyObject* value, int64_t wanted) { return PyLong_CheckExact(value) && PyLong_AsLongLong(value) == wanted; }

bool is_float(PyObject* value, double wanted) {
  return PyFloat_CheckExact(value) && PyFloat_AS_DOUBLE(value) == wanted;
}

// As above for an argument of Python's; a tensor is left in `tensor`.
bool is(const Part& part, PyObject* value, c10::Device device, const at::Tensor*& tensor) {
  switch (part.index()) {
    case 0:
      return value == Py_None;
    case 1:
      if (!THPVariable_Check(value)) {
        return false;
      }
      tensor = &THPVariable_Unpack(value);
      return is_servable(*tensor) && has_form(*tensor, std::get<Form>(part), device);
    case 2:
      return value == (std::get<bool>(part) ? Py_True : Py_False);
    case 3:
      return is_int(value, std::get<int64_t>(part));
    case 4:
      return is_float(value, std::get<double>(part));
    case 5:
      return PyUnicode_CheckExact(value) &&
             PyUnicode_CompareWithASCIIString(value, std::get<std::string>(part).c_str()) == 0;
    case 6:
      return is_sequence(value, std::get<Shape>(part), is_int);
    default:
      return is_sequence(value, std::get<std::vector<double>>(part), is_float);
  }
}

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
        if (is_elsewhere(*value)) {
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
  static bool launch(const Case& value, const Tensors& arguments, void* area, Made& made) {
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
    if (bits % kAlignment != 0 || has_overlap(value, arguments)) {
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
    return value.launch(value.function, value.block_dim, stream, nullptr, pointers.data(), nullptr) == 0;
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

  py::dict environment_;
  py::object kill_, scope_, area_of_;
  bool grad_;
  // Both under the interpreter lock.
  std::unordered_map<size_t, std::vector<std::shared_ptr<Case>>> cases_;
  std::unordered_map<void*, void*> areas_;
};

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

// What a graph's node calls: one case, without dispatch. Everything happens under the interpreter lock but the launch.
struct Bound {
  enum Container { kOne, kTuple, kList };
  std::string name, module;
  PyMethodDef method;
  std::shared_ptr<Table> table;
  py::object otherwise;         // called with what isn't the case's
  std::shared_ptr<Case> value;  // null until the first call was served and compared
  py::tuple names;              // keywords of the call
  std::vector<int> places;      // where in the key its arguments are, and then its keywords
  py::list layers;              // who wants the operator's calls;
  py::object op;                // the last one has to be this
  int container = kOne;

  bool is_mine(PyObject* const* args, size_t count, PyObject* given, Tensors& tensors) const {
    const size_t named = given == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(given));
    if (value == nullptr || !value->serving || named != names.size() || count + named != places.size() ||
        layers.empty() || PyList_GET_ITEM(layers.ptr(), PyList_GET_SIZE(layers.ptr()) - 1) != op.ptr() ||
        table->is_left_to_python() || Table::is_elsewhere(*value)) {
      return false;
    }
    for (size_t i = 0; i < named; ++i) {  // names are interned
      if (PyTuple_GET_ITEM(given, i) != PyTuple_GET_ITEM(names.ptr(), i)) {
        return false;
      }
    }
    tensors.resize(value->key.size());
    for (size_t i = 0; i < places.size(); ++i) {
      const auto place = static_cast<size_t>(places[i]);
      if (!is(value->key[place], args[i], value->device, tensors[place])) {
        PyErr_Clear();
        return false;
      }
    }
    return true;
  }

  PyObject* call(PyObject* const* args, size_t count, PyObject* given) {
    Tensors tensors;
    if (!is_mine(args, count, given, tensors)) {
      return PyObject_Vectorcall(otherwise.ptr(), args, count, given);
    }
    const std::shared_ptr<Case> now = value;  // which another thread may replace meanwhile
    Made made;
    bool launched = false;
    try {
      void* const area = table->area_now(now->device);
      const py::gil_scoped_release unlocked;
      launched = Table::launch(*now, tensors, area, made);
    } catch (const std::exception&) {
      // Nothing was launched: Python meets the same, counts it, and has the original serve.
    }
    if (launched) {
      const py::gil_scoped_release unlocked;
      Table::finish(*now, tensors, made);
    } else {
      made.clear();
      return PyObject_Vectorcall(otherwise.ptr(), args, count, given);
    }
    const auto result = [&](int number) {
      return py::reinterpret_steal<py::object>(THPVariable_Wrap(number < 0 ? *tensors[static_cast<size_t>(-1 - number)]
                                                                           : made[static_cast<size_t>(number)]));
    };
    if (container == kOne) {
      return now->returned.empty() ? py::none().release().ptr() : result(now->returned[0]).release().ptr();
    }
    py::list results;
    for (int number : now->returned) {
      results.append(result(number));
    }
    return container == kList ? results.release().ptr() : PyList_AsTuple(results.ptr());
  }
};

constexpr const char* kBound = "ascendopt_tune.Bound";

PyObject* call_bound(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  auto* bound = static_cast<std::shared_ptr<Bound>*>(PyCapsule_GetPointer(self, kBound));
  try {
    return (*bound)->call(args, static_cast<size_t>(count), names);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// A Bound from outside; doesn't keep it alive, for the function it calls otherwise holds this.
struct Handle {
  std::weak_ptr<Bound> bound;

  void set(std::shared_ptr<Case> value, py::tuple names, std::vector<int> places, py::list layers, py::object op,
           int container) const {
    if (const auto it = bound.lock()) {
      it->value = std::move(value);
      it->names = std::move(names);
      it->places = std::move(places);
      it->layers = std::move(layers);
      it->op = std::move(op);
      it->container = container;
    }
  }
  void set_otherwise(py::object function) const {
    if (const auto it = bound.lock()) {
      it->otherwise = std::move(function);
    }
  }
};

// A function of Python's, and the handle to it.
py::tuple make_bound(std::string name, std::string module, std::shared_ptr<Table> table) {
  auto bound = std::make_shared<Bound>();
  bound->name = std::move(name);
  bound->module = std::move(module);
  bound->table = std::move(table);
  bound->otherwise = py::none();
  bound->op = py::none();
  bound->method = {bound->name.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_bound)),
                   METH_FASTCALL | METH_KEYWORDS, nullptr};
  const auto self = py::capsule(new std::shared_ptr<Bound>(bound), kBound, [](PyObject* capsule) {
    delete static_cast<std::shared_ptr<Bound>*>(PyCapsule_GetPointer(capsule, kBound));
  });
  const py::str module_name(bound->module);
  auto function = py::reinterpret_steal<py::object>(PyCFunction_NewEx(&bound->method, self.ptr(), module_name.ptr()));
  return py::make_tuple(std::move(function), Handle{bound});
}

std::shared_ptr<Case> make_case(std::vector<Part> key, int device, bool several, uintptr_t function, uint32_t block_dim,
                                uintptr_t launch, uintptr_t tiling, int64_t workspace_bytes, int64_t system_bytes,
                                std::vector<int> inputs, std::vector<Output> outputs, std::vector<int> returned) {
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

}  // namespace

PYBIND11_MODULE(ascendopt_fast_path, module) {
  module.def("dtype_number", [](py::handle dtype) {
    if (!THPDtype_Check(dtype.ptr())) {
      throw py::type_error("not a torch.dtype");
    }
    return static_cast<int>(reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type);
  });
  module.def("bound", &make_bound, py::arg("name"), py::arg("module"), py::arg("table"));
  py::class_<Output>(module, "Output")
      .def(py::init([](int place, int argument, bool is_given, Form form, std::optional<double> fill) {
             return Output{place, argument, is_given, std::move(form), fill};
           }),
           py::arg("place"), py::arg("argument"), py::arg("is_given"), py::arg("form"), py::arg("fill"))
      .def_property_readonly_static("NEW", [](py::handle) { return static_cast<int>(Output::kNew); })
      .def_property_readonly_static("INTO", [](py::handle) { return static_cast<int>(Output::kInto); })
      .def_property_readonly_static("COPIED_INTO", [](py::handle) { return static_cast<int>(Output::kCopiedInto); })
      .def_property_readonly_static("OVER", [](py::handle) { return static_cast<int>(Output::kOver); });
  py::class_<Case, std::shared_ptr<Case>>(module, "Case")
      .def(py::init(&make_case), py::arg("key"), py::arg("device"), py::arg("several"), py::arg("function"),
           py::arg("block_dim"), py::arg("launch"), py::arg("tiling"), py::arg("workspace_bytes"),
           py::arg("system_bytes"), py::arg("inputs"), py::arg("outputs"), py::arg("returned"))
      .def_property_readonly("calls", [](const Case& value) { return value.calls.load(); });
  py::class_<Table, std::shared_ptr<Table>>(module, "Table")
      .def(py::init<py::dict, py::object, py::object, py::object, bool>(), py::arg("environment"), py::arg("kill"),
           py::arg("scope"), py::arg("area_of"), py::arg("grad"))
      .def("put", &Table::put)
      .def("remove", &Table::remove);
  py::class_<Override>(module, "Override")
      .def(py::init<const std::string&, const std::string&, std::shared_ptr<Table>>())
      .def("undo", &Override::undo);
  py::class_<Handle>(module, "Handle").def("set", &Handle::set).def("set_otherwise", &Handle::set_otherwise);
}
