// Is a call of a case? Its arguments against the case's key, on the dispatcher's stack and as Python has them.
#pragma once
#include "case.h"

#include <ATen/core/stack.h>
#include <acl/acl_base.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch_npu/csrc/core/npu/NPUFormat.h>

#include <algorithm>
#include <cmath>

namespace ascendopt_tune {

inline void mix(size_t& hash, size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29); }

inline void mix_shape(size_t& hash, c10::IntArrayRef shape) {
  for (int64_t n : shape) {
    mix(hash, static_cast<size_t>(n));
  }
}

// Of the shapes and of each argument's kind; values are compared.
inline size_t hash_of(const std::vector<Part>& key) {
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
inline bool is_plain(const at::Tensor& tensor) {
  const int64_t format = at_npu::native::get_npu_format(tensor);
  return format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCDHW;
}

inline bool is_servable(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1 &&
         tensor.layout() == at::kStrided && tensor.is_contiguous() && is_plain(tensor);
}

inline bool has_form(const at::Tensor& tensor, const Form& form, c10::Device device) {
  return tensor.device() == device && tensor.sizes() == c10::IntArrayRef(form.first) &&
         static_cast<int>(tensor.scalar_type()) == form.second;
}

// As hash_of for arguments on the stack; false for a call that no key stands for.
inline bool hash_of(c10::ArrayRef<c10::IValue> arguments, bool grad, size_t& hash) {
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

// 0 and -0 are two values; NaN is none that a key stands for.
inline bool is_same(double a, double b) { return a == b && std::signbit(a) == std::signbit(b); }

template <typename List, typename Values>
bool is_list(const List& list, const Values& values) {
  return list.size() == values.size() && std::equal(values.begin(), values.end(), list.begin());
}

inline bool is_double_list(const std::vector<double>& list, const std::vector<double>& values) {
  return list.size() == values.size() && std::equal(values.begin(), values.end(), list.begin(), is_same);
}

inline bool is(const Part& part, const c10::IValue& value, c10::Device device) {
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
      return value.isDouble() && is_same(value.toDouble(), std::get<double>(part));
    case 5:
      return value.isString() && value.toStringRef() == std::get<std::string>(part);
    case 6:
      return value.isIntList() && is_list(value.toIntList(), std::get<Shape>(part));
    default:
      return value.isDoubleList() && is_double_list(value.toDoubleVector(), std::get<std::vector<double>>(part));
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

inline bool is_int(PyObject* value, int64_t wanted) {
  int overflow = 0;
  return PyLong_CheckExact(value) && PyLong_AsLongLongAndOverflow(value, &overflow) == wanted && overflow == 0;
}

inline bool is_float(PyObject* value, double wanted) {
  return PyFloat_CheckExact(value) && is_same(PyFloat_AS_DOUBLE(value), wanted);
}

// As above for an argument of Python's; a tensor is left in `tensor`.
inline bool is(const Part& part, PyObject* value, c10::Device device, const at::Tensor*& tensor) {
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

}  // namespace ascendopt_tune
