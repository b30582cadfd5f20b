"""A kernel file that binds its kernel to PyTorch is compiled without PyTorch (build/torch_code.py)."""

from __future__ import annotations

from ascendopt_tune.build.torch_code import without_torch

FILE = r"""
#include <torch/all.h>
#include "torch_npu/csrc/core/npu/NPUStream.h"
#include "kernel_operator.h"
#define STEP(a) \
  at::step(a)
namespace py = pybind11;
namespace own {
namespace inner {  // at::Tensor }
struct Sizes { int n; };
template <typename T>
__global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, int n) {
  if (n > 0) { scale_rows<T>(x, y, n); }
}
const char* words[] = {"at::", "}"};
at::Tensor run(const at::Tensor& x) {
#ifdef FAST
  for (int i = 0; i < 3; i++) { use('}', "{"); }
#endif
  scale<half><<<8, nullptr, stream()>>>(x.data_ptr(), y.data_ptr(), 3);
  return y;
}
TORCH_LIBRARY_IMPL(own, PrivateUse1, m)
{
  m.impl("run", run);
}
int count(int a = (1), Sizes s = {2}) { return a; }
}
}
PYBIND11_MODULE(own, m) { m.def("run", &own::inner::run); }
extern "C" {
__global__ __aicore__ void other(GM_ADDR x) {}
}
"""


def test_what_is_torchs_is_left_out() -> None:
    left = without_torch(FILE)
    assert left.count("\n") == FILE.count("\n")
    for word in ("torch", "TORCH", "PYBIND11", "py =", "at::Tensor run", "m.impl", "<<<"):
        assert word not in left, word
    lines = left.splitlines()
    for line in FILE.splitlines():
        mine = not any(w in line for w in ("torch", "pybind11", "PYBIND11", "TORCH", "at::Tensor run", "m.impl"))
        if mine and ("__global__" in line or line.startswith(("#", "namespace", "struct", "const", "int ", "extern"))):
            assert line in lines, line
    assert "scale_rows<T>" in left


def test_a_file_without_its_headers_is_as_it_was() -> None:
    text = FILE.replace("torch/all.h", "all.h").replace("torch_npu/csrc/core/npu/NPUStream.h", "stream.h")
    assert without_torch(text) == text
