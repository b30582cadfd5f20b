// The names of the high-level matrix multiplication's tiling interface. Using one fails to compile with a message.
#pragma once

namespace matmul_tiling {

template <typename...>
constexpr bool cube_is_covered = false;

template <typename... T>
class NotCovered {
  static_assert(
      cube_is_covered<T...>,
      "matmul tiling: the high-level matrix multiplication and mix kernels are not covered by the virtual NPU at "
      "this stage, which runs vector kernels, and cube kernels of the basic API");
};

using MatmulApiTiling = NotCovered<>;
using MultiCoreMatmulTiling = NotCovered<>;
using BatchMatmulTiling = NotCovered<>;
using PlatformInfo = NotCovered<>;

}  // namespace matmul_tiling

namespace optiling {
using TCubeTiling = matmul_tiling::NotCovered<>;
}  // namespace optiling
