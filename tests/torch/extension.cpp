// A third party's extension: an operator with an out= form and an in-place form, whose kernels for
// the device and whose gradient are written with torch's own operators.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <Python.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return at::add(x, y); }

at::Tensor& add_out(const at::Tensor& x, const at::Tensor& y, at::Tensor& out) { return at::add_out(out, x, y); }

at::Tensor& add_(at::Tensor& x, const at::Tensor& y) { return x.add_(y); }

class AddFunction : public torch::autograd::Function<AddFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x, const at::Tensor& y) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("aot_third_party::add", "").typed<decltype(add)>();
    return op.call(x, y);
  }
  // Twice the true gradient: so a test sees that this formula is the one in use.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor both = at::add(gradients[0], gradients[0]);
    return {both, both};
  }
};

at::Tensor add_autograd(const at::Tensor& x, const at::Tensor& y) { return AddFunction::apply(x, y); }

}  // namespace

TORCH_LIBRARY(aot_third_party, library) {
  library.def("add(Tensor x, Tensor y) -> Tensor");
  library.def("add.out(Tensor x, Tensor y, *, Tensor(a!) out) -> Tensor(a!)");
  library.def("add_(Tensor(a!) x, Tensor y) -> Tensor(a!)");
}

TORCH_LIBRARY_IMPL(aot_third_party, PrivateUse1, library) {
  library.impl("add", add);
  library.impl("add.out", add_out);
  library.impl("add_", add_);
}

PyMODINIT_FUNC PyInit_third_party() {
  static PyModuleDef module = {PyModuleDef_HEAD_INIT, "third_party"};
  return PyModule_Create(&module);
}

TORCH_LIBRARY_IMPL(aot_third_party, AutogradPrivateUse1, library) { library.impl("add", add_autograd); }
