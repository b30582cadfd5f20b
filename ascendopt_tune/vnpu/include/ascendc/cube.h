// The names of the high-level matrix multiplication. Kernels may include its header; using what it declares fails to
// compile with a message.
#pragma once
#include "tensor.h"

enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, VECTOR, SCALAR, ND_ALIGN };
enum class LayoutMode { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };

namespace AscendC {

namespace detail {
template <typename...>
constexpr bool cube_is_covered = false;
}  // namespace detail

template <TPosition POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false>
struct MatmulType {
  using T = TYPE;
  static constexpr TPosition pos = POSITION;
  static constexpr CubeFormat format = FORMAT;
  static constexpr bool isTrans = ISTRANS;
  static constexpr LayoutMode layout = LAYOUT;
  static constexpr bool ibShare = IBSHARE;
};

// Template arguments behind the types are values and types in turn, by the form used; none is looked at.
template <typename A_TYPE, typename B_TYPE, typename C_TYPE, typename BIAS_TYPE = C_TYPE, const auto&... CONFIG>
class Matmul {
  static_assert(detail::cube_is_covered<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE>,
                "AscendC::Matmul: the high-level matrix multiplication and mix kernels are not covered by the virtual "
                "NPU at this stage, which runs vector kernels, and cube kernels of the basic API");
};

namespace tiling {
template <typename... T>
struct NotCoveredCubeTiling {
  static_assert(detail::cube_is_covered<T...>,
                "TCubeTiling: the high-level matrix multiplication and mix kernels are not covered by the virtual NPU "
                "at this stage, which runs vector kernels, and cube kernels of the basic API");
};
using TCubeTiling = NotCoveredCubeTiling<>;
}  // namespace tiling
}  // namespace AscendC

using AscendC::tiling::TCubeTiling;
namespace matmul = AscendC;

// No Matmul object exists that could be registered.
#define REGIST_MATMUL_OBJ(tpipe, workspace, ...) static_cast<void>(0)
