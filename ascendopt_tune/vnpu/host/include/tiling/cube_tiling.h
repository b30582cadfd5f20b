// The names of the matrix multiplication's tiling interface. Using one fails to compile with a message, because cube
// and mix kernels are not covered.
#pragma once

namespace matmul_tiling {

template <typename...>
constexpr bool cube_is_covered = false;

template <typename... T>
class NotCovered {
  static_assert(cube_is_covered<T...>,
                "matmul tiling: cube and mix kernels are not covered by the virtual NPU at this stage, which runs "
                "vector kernels");
};

using MatmulApiTiling = NotCovered<>;
using MultiCoreMatmulTiling = NotCovered<>;
using BatchMatmulTiling = NotCovered<>;
using PlatformInfo = NotCovered<>;

}  // namespace matmul_tiling

namespace optiling {
using TCubeTiling = matmul_tiling::NotCovered<>;
}  // namespace optiling
