// Calls of a compiled graph's nodes (bound.py).
#pragma once
#include "table.h"

namespace ascendopt_tune {

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
    if (value == nullptr || !value->serving || value->is_due() || named != names.size() ||
        count + named != places.size() || layers.empty() ||
        PyList_GET_ITEM(layers.ptr(), PyList_GET_SIZE(layers.ptr()) - 1) != op.ptr() || table->is_left_to_python() ||
        Table::is_elsewhere(*value)) {
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

inline constexpr const char* kBound = "ascendopt_tune.Bound";

inline PyObject* call_bound(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
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
inline py::tuple make_bound(std::string name, std::string module, std::shared_ptr<Table> table) {
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

}  // namespace ascendopt_tune
