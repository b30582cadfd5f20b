// The high-level Matmul of the headers that ASCENDOPT_MATMUL_HEADERS names: what it takes from CANN's inner headers,
// under their names, with the values and meanings they have there, and what CANN's lib/matmul_intf.h makes of it.
// build/matmul_headers.py leads to those headers.
#pragma once
#include "kernel_operator.h"
#include "kernel_tiling/cube_tiling_data.h"

namespace AscendC {

constexpr int32_t ONE_BYTE_BIT_SIZE = 8, HALF_FACTOR = 2, BYTE_PER_FRACTAL = 512, MIX_NUM = 2;
constexpr uint32_t INT4_TWO = 2, TOTAL_L0A_SIZE = 64 * 1024, TOTAL_L0B_SIZE = 64 * 1024, CACHE_LINE_SIZE = 64;

class KfcCommClient;  // of mixed kernels
enum class TraceId : uint32_t { KFC_CLIENT_POST_MSG = 0, MatMul_PROCESS_MSG, MatMul_CALC };

// A type with a layout; a tensor of it is only a place.
template <typename T>
struct TensorTrait {
  using LiteType = T;
};
template <typename T>
class LocalTensor<TensorTrait<T>> {
 public:
  using PrimType = T;
  void SetAddr(const TBuffAddr& address) { address_ = address; }
  TBuffAddr address_;
};

template <bool outer, bool inner, typename A, typename B, typename C, typename D>
struct ConditionalMulti : std::conditional<outer, std::conditional_t<inner, A, B>, std::conditional_t<inner, C, D>> {};
template <typename T, typename... Others>
constexpr bool SupportType() {
  return (std::is_same_v<T, Others> || ...);
}
constexpr uint32_t ConstCeil(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
constexpr uint32_t CeilDivision(uint32_t a, uint32_t b) { return b == 0 ? a : (a + b - 1) / b; }
ASCENDC_INLINE void Barrier() {}  // for the device's compiler
ASCENDC_INLINE int64_t GetSubBlockIdxImpl() { return GetSubBlockIdx(); }

// A Matmul begins to allocate its buffers: in L1 and L0C where the others of the core have theirs. `bytes`: of L1, of
// L0C. With mode 1 the two vector cores' objects have a half each.
ASCENDC_INLINE void InitShareBufStart(TPipe*, uint32_t mode, uint32_t* bytes, uint32_t, uint8_t subBlockIdx) {
  matmul_api::matmul_inner::begin_other_matmul(bytes[0], bytes[1], mode == 1 && subBlockIdx == 1);
}
ASCENDC_INLINE void InitShareBufEnd(TPipe*) { matmul_api::matmul_inner::end_other_matmul(); }

// What the Matmul's own code calls by this name.
namespace Impl::Detail {
template <HardEvent event>
ASCENDC_INLINE void SetFlag(int32_t id) {
  matmul_api::matmul_inner::set_flag_of_other<event>(id);
}
}  // namespace Impl::Detail

}  // namespace AscendC

#define ASCENDC_REPORT_NOT_SUPPORT(condition, name) VNPU_ASSERT(name, condition, )
#define TRACE_START(x) static_cast<void>(0)
#define TRACE_STOP(x) static_cast<void>(0)
#define __ASC_USE_RESERVED_UBUF__(...)

#ifdef ASCENDOPT_MATMUL_HEADERS
#ifdef ASCENDC_CUBE_ONLY
#include "include/adv_api/matmul/matmul.h"

namespace AscendC {

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
using Matmul = MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY>;

// Each object with the tiling behind it: nullptr where that is made of constants. Without one the kernel calls Init.
namespace detail {
template <class M>
ASCENDC_INLINE void register_matmuls(TPipe* pipe, M& object) {
  object.SetSubBlockIdx(0);
  SetTPipe(object, pipe);
}
template <class M, class T, class... Others>
ASCENDC_INLINE void register_matmuls(TPipe* pipe, M& object, T* tiling, Others&&... others) {
  object.SetSubBlockIdx(0);
  object.Init(tiling, pipe);
  if (tiling != nullptr) matmul_api::matmul_inner::read_tiling();
  if constexpr (sizeof...(others) > 0) register_matmuls(pipe, others...);
}
}  // namespace detail

}  // namespace AscendC

#define REGIST_MATMUL_OBJ(tpipe, workspace, ...) \
  if ASCEND_IS_AIV                               \
    return;                                      \
  (static_cast<void>(workspace), AscendC::detail::register_matmuls(tpipe, __VA_ARGS__))
#else
#include "vnpu_matmul_messages.h"
// Their client is what vector cores have, their server what the cube core has.
#define NotifyEvent detail::raise_notice
#define WaitEvent detail::await_notice
#ifdef __DAV_C220_CUBE__
#define SPLIT_CORE_CUBE
#else
#define SPLIT_CORE_VEC
#endif
#define LIB_MATMUL_MATMUL_INTF_H  // theirs would say which of them is Matmul
#include "impl/adv_api/detail/kfc/kfc_register_obj.h"
#include "impl/adv_api/detail/kfc/kernel_kfc.h"
#undef NotifyEvent
#undef WaitEvent

namespace AscendC {

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
#ifdef SPLIT_CORE_CUBE
class Matmul : public MatmulServiceAux<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY> {
#else
class Matmul : public MatmulClient<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY> {
#endif
  static_assert(!ToMatmulConfig(MM_CFG).enableMixDualMaster,
                "AscendC::Matmul: enableMixDualMaster is not covered by the virtual NPU with --matmul-headers");
  static_assert(!ToMatmulConfig(MM_CFG).intraBlockPartSum,
                "AscendC::Matmul: intraBlockPartSum is not covered by the virtual NPU with --matmul-headers");
  static_assert(!A_TYPE::ibShare || !B_TYPE::ibShare,
                "AscendC::Matmul: IBSHARE of A and B at once is not covered by the virtual NPU with --matmul-headers");
  static_assert(!PhyPosIsL1(A_TYPE::pos) && !PhyPosIsL1(B_TYPE::pos) && !PhyPosIsL1(C_TYPE::pos),
                "AscendC::Matmul: matrices of a vector core in TSCM are not covered by the virtual NPU with "
                "--matmul-headers");
};

}  // namespace AscendC

// The names in front tell which cores a kernel is for that says nothing (runtime/rtc_scan.cpp).
#define REGIST_MATMUL_OBJ(tpipe, workspace, ...)                                          \
  static_cast<void>(&AscendC::matmul_api::matmul_inner::Registration::serve_matmul<>);    \
  static_cast<void>(&AscendC::matmul_api::matmul_inner::Registration::register_matmul<>); \
  REGIST_CUBE_OBJ(tpipe, AscendC::detail::message_workspace(workspace), __VA_ARGS__)
#endif

namespace AscendC {

// Without a namespace there; kernels write them both ways.
using ::BatchMode;
using ::BatchOutMode;
using ::CFG_IBSHARE_NORM;
using ::CFG_MDL;
using ::CFG_NORM;
using ::CubeFormat;
using ::GetBasicConfig;
using ::GetIBShareNormConfig;
using ::GetMDLConfig;
using ::GetMMConfig;
using ::GetNormalConfig;
using ::GetSpecialMDLConfig;
using ::IterateMode;
using ::IterateOrder;
using ::LayoutMode;
using ::MatmulApiStaticTiling;
using ::MatmulBatchParams;
using ::MatmulConfig;
using ::MatmulConfigMode;
using ::MatmulFuncParams;
using ::MatmulQuantParams;
using ::MatmulShapeParams;
using ::MM_CFG_BB;
using ::ScheduleType;

}  // namespace AscendC
#endif
