// AscendC functions nobody has written yet, and those that don't exist on architecture 2201: calling one fails to
// compile with a message that names it. Whoever covers a function removes its line (a test finds names that are both).
#pragma once
#include "types.h"

namespace AscendC {

namespace detail {
template <typename...>
constexpr bool never = false;
template <auto...>
constexpr bool never_value = false;
}  // namespace detail

// Three forms, because template arguments of such a call are types, values, or types and then values.
#define VNPU_REFUSE(NAME, MESSAGE)                                                   \
  template <typename... Types, typename... Arguments>                                \
  void NAME(Arguments&&...) {                                                        \
    static_assert(detail::never<Types..., Arguments...>, "AscendC::" #NAME MESSAGE); \
  }                                                                                  \
  template <auto First, auto... Values, typename... Arguments>                       \
  void NAME(Arguments&&...) {                                                        \
    static_assert(detail::never_value<First>, "AscendC::" #NAME MESSAGE);            \
  }                                                                                  \
  template <typename Type, auto First, auto... Values, typename... Arguments>        \
  void NAME(Arguments&&...) {                                                        \
    static_assert(detail::never_value<First>, "AscendC::" #NAME MESSAGE);            \
  }
#define VNPU_NOT_COVERED(NAME, FAMILY)                                                                          \
  VNPU_REFUSE(NAME, " is not covered by the virtual NPU: add it in ascendopt_tune/vnpu/include/ascendc/" FAMILY \
                    ".h and semantics/, see CONTRIBUTING.md")
#define VNPU_NOT_ON_2201(NAME) \
  VNPU_REFUSE(NAME, " does not exist on architecture 2201 (Atlas A2 and A3), which the virtual NPU models")

#define VNPU_CUBE(NAME) \
  VNPU_REFUSE(NAME, ": not covered by the virtual NPU at this stage: docs/cube.md says what cube kernels can use")

// Of cube cores, and of kernels on cube and vector cores.
VNPU_CUBE(LoadImageToLocal)
VNPU_CUBE(SetAippFunctions)
VNPU_NOT_COVERED(GetHcclContext, "hccl")
VNPU_NOT_COVERED(SetHcclContext, "hccl")

// Synchronization and system.
VNPU_NOT_COVERED(GetArchVersion, "system")
VNPU_NOT_COVERED(GetProgramCounter, "system")
VNPU_NOT_COVERED(MetricsProfStart, "system")
VNPU_NOT_COVERED(MetricsProfStop, "system")
VNPU_NOT_COVERED(CheckLocalMemoryIA, "debug")
// Of inner headers: operators name them by `using`, and call none of them.
VNPU_NOT_COVERED(InitDump, "debug")
VNPU_NOT_COVERED(ReduceLastND, "adv_compose")

// Vector.
VNPU_NOT_COVERED(AddDeqRelu, "vec_binary")
VNPU_NOT_COVERED(BilinearInterpolation, "vec_binary")
VNPU_NOT_COVERED(ReduceMaxCount, "vec_reduce")
VNPU_NOT_COVERED(ReduceMinCount, "vec_reduce")

// High-level APIs.
VNPU_NOT_COVERED(SoftmaxFlashV3, "adv_compose")

// Of other architectures.
VNPU_NOT_ON_2201(Scatter)
VNPU_NOT_ON_2201(RpSort16)
VNPU_NOT_ON_2201(MrgSort4)
VNPU_NOT_ON_2201(ProposalConcat)
VNPU_NOT_ON_2201(ProposalExtract)
VNPU_NOT_ON_2201(Interleave)
VNPU_NOT_ON_2201(DeInterleave)
VNPU_NOT_ON_2201(VectorPadding)
VNPU_NOT_ON_2201(AbsSub)
VNPU_NOT_ON_2201(ExpSub)
VNPU_NOT_ON_2201(Mull)
VNPU_NOT_ON_2201(Prelu)
VNPU_NOT_ON_2201(Ands)
VNPU_NOT_ON_2201(Ors)
VNPU_NOT_ON_2201(Subs)
VNPU_NOT_ON_2201(Divs)
VNPU_NOT_ON_2201(MmadMx)

#undef VNPU_CUBE
#undef VNPU_NOT_COVERED
#undef VNPU_NOT_ON_2201
#undef VNPU_REFUSE

}  // namespace AscendC

// Instructions as the device's compiler has them, below the basic API: known, so that what nobody calls compiles.
#define VNPU_INSTRUCTION(NAME)                                                                         \
  template <typename... Arguments>                                                                     \
  void NAME(Arguments&&...) {                                                                          \
    static_assert(AscendC::detail::never<Arguments...>,                                                \
                  #NAME " is not covered by the virtual NPU, which has the basic functions above it"); \
  }
VNPU_INSTRUCTION(set_fpc)
VNPU_INSTRUCTION(set_nd_para)
VNPU_INSTRUCTION(copy_matrix_cc_to_gm)
#undef VNPU_INSTRUCTION
