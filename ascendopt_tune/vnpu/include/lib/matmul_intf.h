// The high-level matrix multiplication: what kernel_operator.h has of it becomes visible, under CANN's names.
#pragma once
#include "kernel_operator.h"
#include "kernel_tiling/cube_tiling_data.h"

#ifdef ASCENDOPT_MATMUL_HEADERS
#if !defined(ASCENDC_CUBE_ONLY) && !__has_include("impl/adv_api/detail/kfc/kernel_kfc.h")
#error \
    "the headers of --matmul-headers (ASCENDOPT_MATMUL_HEADERS) have no Matmul for mixed kernels (adv_api/detail/kfc); for these use the virtual NPU's own"
#endif
#include "vnpu_matmul_headers.h"
#else
namespace AscendC {
using namespace matmul_api;

// What cube cores alone call differs from what vector cores ask for where batches are multiplied.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
#ifdef ASCENDC_CUBE_ONLY
class Matmul : public MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY> {
};
#else
class Matmul : public MatmulClient<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY> {
};
#endif

// Kernels take these from CANN's inner headers, which count with 16 bits.
inline uint16_t CeilDiv(uint16_t num1, uint16_t num2) {
  return num2 == 0 ? 0 : static_cast<uint16_t>((num1 + num2 - 1) / num2);
}
inline uint16_t CeilAlign(uint16_t num1, uint16_t num2) { return static_cast<uint16_t>(CeilDiv(num1, num2) * num2); }
// Up to a multiple of num2; of 0 there is none. A kernel's own function of that name is preferred to one with a pack.
template <typename T, typename... None>
constexpr T Align(T num1, T num2, None...) {
  return num2 == 0 ? T(0) : static_cast<T>(num1 + num2 - 1 - (num1 + num2 - 1) % num2);
}
constexpr MatmulConfig ToMatmulConfig(const MatmulConfig& cfg) { return cfg; }
constexpr MatmulConfig ToMatmulConfig(const MatmulApiStaticTiling& cfg) { return cfg.cfg; }
namespace Impl {
constexpr int32_t QUEUE_DEPTH = 1;
namespace Detail {
using namespace matmul_api::policies;
}
}  // namespace Impl
}  // namespace AscendC

// CANN's headers make these visible without their namespace.
using AscendC::BatchMode;
using AscendC::BatchOutMode;
using AscendC::CFG_IBSHARE_NORM;
using AscendC::CFG_MDL;
using AscendC::CFG_NORM;
using AscendC::CubeFormat;
using AscendC::GetBasicConfig;
using AscendC::GetIBShareNormConfig;
using AscendC::GetMDLConfig;
using AscendC::GetMMConfig;
using AscendC::GetNormalConfig;
using AscendC::GetSpecialMDLConfig;
using AscendC::IterateMode;
using AscendC::IterateOrder;
using AscendC::LayoutMode;
using AscendC::MatmulApiStaticTiling;
using AscendC::MatmulBatchParams;
using AscendC::MatmulConfig;
using AscendC::MatmulConfigMode;
using AscendC::MatmulFuncParams;
using AscendC::MatmulQuantParams;
using AscendC::MatmulShapeParams;
using AscendC::MM_CFG_BB;
using AscendC::ScheduleType;
#endif
namespace matmul = AscendC;
using AscendC::GetSysWorkSpacePtr;
using AscendC::tiling::TCubeTiling;

#define __kfc_workspace__  // marks the workspace of kernels on cube and vector cores

#ifndef ASCENDOPT_MATMUL_HEADERS
// Cube cores alone multiply where they are asked. Of a mixed kernel, vector cores ask and the cube core of their group
// does nothing else: its program ends here. (With ASCENDC_CUBE_ONLY it is the vector cores' that does.)
#ifdef ASCENDC_CUBE_ONLY
#define VNPU_MATMUL_OTHERS(...) \
  if ASCEND_IS_AIV              \
  return
#else
#define VNPU_MATMUL_OTHERS(...) \
  if (VNPU_CUBE_PASS && AscendC::matmul_api::matmul_inner::Registration::serve_matmul(__VA_ARGS__)) return
#endif
#define REGIST_MATMUL_OBJ(tpipe, workspace, ...)           \
  VNPU_MATMUL_OTHERS(__VA_ARGS__);                         \
  (static_cast<void>(tpipe), static_cast<void>(workspace), \
   AscendC::matmul_api::matmul_inner::Registration::register_matmul(__VA_ARGS__))
#endif
