// Hits without Python: a kernel over the hook of intercept.py (kernel.h), and what a compiled graph's node calls
// (bound.h). Compiled by fast_build.py, filled by fast_path.py.
//
// A call whose case is known is launched here; every other one goes to Python with its arguments untouched, and so does
// one that can't be launched, for Python to try, count and have the original serve. Tables are read and changed under
// Python's interpreter lock; it is also what the kill switch (a name in the environment) and the policy of a `with`
// block (a context variable) are asked under, so both work from the very next call on. Allocation and launch don't hold
// it.
#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>

#include "bound.h"
#include "kernel.h"

using namespace ascendopt_tune;

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
      .def_property_readonly("calls", [](const Case& value) { return value.calls.load(); })
      .def_property(
          "due", [](const Case& value) { return value.due.load(); }, [](Case& value, int64_t due) { value.due = due; })
      .def_property(
          "code", [](const Case& value) { return value.code.load(); },
          [](Case& value, int code) { value.code = code; });
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
