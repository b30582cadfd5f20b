// One product on one cube core by the high-level Matmul, launched directly.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;

extern "C" __global__ __cube__ void product(GM_ADDR a, GM_ADDR b, GM_ADDR c) {
  TCubeTiling t = {};
  t.usedCoreNum = 1;
  t.M = t.N = t.Ka = t.Kb = t.singleCoreM = t.singleCoreN = t.singleCoreK = 64;
  t.baseM = t.baseN = t.baseK = 32;
  t.depthA1 = t.depthB1 = 4;
  t.stepM = t.stepN = t.stepKa = t.stepKb = 1;
  t.dbL0A = t.dbL0B = 2;
  t.dbL0C = 1;
  TPipe pipe;
  using In = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using Out = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  Matmul<In, In, Out> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  GlobalTensor<half> left, right;
  GlobalTensor<float> result;
  left.SetGlobalBuffer((__gm__ half*)a);
  right.SetGlobalBuffer((__gm__ half*)b);
  result.SetGlobalBuffer((__gm__ float*)c);
  mm.SetTensorA(left);
  mm.SetTensorB(right);
  mm.IterateAll(result);
  mm.End();
}
