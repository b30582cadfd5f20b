// The bare operator of benchmarks/dispatch.py: what a hand-written binding does for one launch. It allocates the output
// and calls a launch function with the arguments in an array; tiling data and workspace are there already.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace {

using Launch = int (*)(void*, uint32_t, void*, void*, void**, void*);

Launch g_launch = nullptr;
void* g_function = nullptr;
void* g_workspace = nullptr;
void* g_tiling = nullptr;
uint32_t g_block_dim = 0;

at::Tensor add(const at::Tensor& x, const at::Tensor& y) {
  TORCH_CHECK(x.is_contiguous() && y.is_contiguous() && x.sizes() == y.sizes());
  at::Tensor z = at::empty(x.sizes(), x.options());
  void* words[] = {x.data_ptr(), y.data_ptr(), z.data_ptr(), g_workspace, g_tiling};
  void* pointers[] = {words, words + 1, words + 2, words + 3, words + 4};
  const int code = g_launch(g_function, g_block_dim, nullptr, nullptr, pointers, nullptr);
  TORCH_CHECK(code == 0);
  return z;
}

}  // namespace

extern "C" void bench_configure(Launch launch, void* function, uint32_t block_dim, void* workspace, void* tiling) {
  g_launch = launch;
  g_function = function;
  g_block_dim = block_dim;
  g_workspace = workspace;
  g_tiling = tiling;
}

// A launch that costs nothing: what is left is the host's work.
extern "C" int bench_no_launch(void*, uint32_t, void*, void*, void**, void*) { return 0; }

TORCH_LIBRARY(aot_bench, library) { library.def("add(Tensor x, Tensor y) -> Tensor"); }
TORCH_LIBRARY_IMPL(aot_bench, PrivateUse1, library) { library.impl("add", add); }
