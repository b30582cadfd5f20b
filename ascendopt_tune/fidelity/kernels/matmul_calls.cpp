// c = a x b, half to float, through the high-level Matmul: asc-devkit's pages about cube cores alone, constant tilings
// and IBShare.
//   ROWS, COLUMNS, DEPTH  of the product
//   SHARE_ROWS, SHARE     of c for a core that asks
//   BASE                  rows of a base block, of 256 columns and 64 along k
//   STEP                  blocks along k that are copied at once
//   MIXED                 1: two vector cores of a group ask its cube core; otherwise the cube core is alone
//   CONSTANT              1: the tiling is known when the kernel is compiled
//   UNIT_FLAG             CFG_MDL with unit flags (1) or without (0); otherwise CFG_NORM, which has them
#if !MIXED
#define ASCENDC_CUBE_ONLY
#endif
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

#ifndef CONSTANT
#define CONSTANT 0
#endif

using namespace AscendC;

using In = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Out = MatmulType<TPosition::GM, CubeFormat::ND, float>;

#if CONSTANT
constexpr MatmulConfig kShape =
    GetMMConfig<MatmulConfigMode::CONFIG_NORM>(MatmulShapeParams{SHARE_ROWS, SHARE, DEPTH, BASE, 256, 64});
constexpr auto kConfig = GetMatmulApiTiling<In, In, Out, Out>(kShape);
#elif defined(UNIT_FLAG)
__aicore__ inline constexpr MatmulConfig Packets() {
  MatmulConfig config = CFG_MDL;
  config.enUnitFlag = UNIT_FLAG != 0;
  return config;
}
constexpr MatmulConfig kConfig = Packets();
#else
constexpr MatmulConfig kConfig = CFG_NORM;
#endif

extern "C" __global__ __aicore__ void matmul_calls(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace) {
#if MIXED
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
#else
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
#endif
  TCubeTiling t = {};
  t.usedCoreNum = ROWS / SHARE_ROWS * (COLUMNS / SHARE);
  t.M = ROWS;
  t.N = COLUMNS;
  t.Ka = t.Kb = t.singleCoreK = DEPTH;
  t.singleCoreM = SHARE_ROWS;
  t.singleCoreN = SHARE;
  t.baseM = BASE;
  t.baseN = 256;
  t.baseK = 64;
  t.stepM = t.stepN = 1;
  t.stepKa = t.stepKb = STEP;
  t.depthA1 = t.depthB1 = 2 * STEP;
  t.dbL0A = t.dbL0B = 2;
  t.dbL0C = 1;
  t.shareL1Size = 512 * 1024;
  t.shareL0CSize = 128 * 1024;
  const uint32_t down = ROWS / SHARE_ROWS, m = GetBlockIdx() % down * SHARE_ROWS, n = GetBlockIdx() / down * SHARE;
  GlobalTensor<half> as, bs;
  GlobalTensor<float> cs;
  as.SetGlobalBuffer((__gm__ half*)a + m * DEPTH);
  bs.SetGlobalBuffer((__gm__ half*)b + n);
  cs.SetGlobalBuffer((__gm__ float*)c + m * COLUMNS + n);
  TPipe pipe;
  Matmul<In, In, Out, Out, kConfig> mm;
#if CONSTANT
  REGIST_MATMUL_OBJ(&pipe, workspace, mm, (TCubeTiling*)nullptr);
  mm.SetOrgShape(ROWS, COLUMNS, DEPTH);
#else
  REGIST_MATMUL_OBJ(&pipe, workspace, mm, &t);
#endif
  mm.SetTensorA(as);
  mm.SetTensorB(bs);
  mm.IterateAll(cs);
  mm.End();
}
