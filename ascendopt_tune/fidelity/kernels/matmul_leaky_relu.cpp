// c = leaky_relu(a x b + bias) in float, [SIZE, SIZE] x [SIZE, SIZE]: every vector core has its block of c multiplied
// by the cube core of its group through the high-level Matmul, and takes it on in the Unified Buffer. As many blocks as
// groups: with two vector cores a group the second half of them makes the same blocks once more.
//   SIZE   rows and columns of every matrix
//   BLOCK  rows and columns of a block of c, and of a step of the product
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

using In = MatmulType<TPosition::GM, CubeFormat::ND, float>;
using Out = MatmulType<TPosition::VECCALC, CubeFormat::ND, float>;

extern "C" __global__ __aicore__ void matmul_leaky_relu(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c,
                                                        GM_ADDR workspace) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  TCubeTiling t = {};
  t.usedCoreNum = SIZE / BLOCK * (SIZE / BLOCK);
  t.M = t.N = t.Ka = t.Kb = t.singleCoreK = SIZE;
  t.singleCoreM = t.singleCoreN = t.baseM = t.baseN = t.baseK = BLOCK;
  t.depthA1 = t.depthB1 = t.stepM = t.stepN = t.stepKa = t.stepKb = t.isBias = 1;
  t.dbL0A = t.dbL0B = t.dbL0C = 1;
  t.shareL1Size = 512 * 1024;
  t.shareL0CSize = 128 * 1024;
  const uint32_t across = SIZE / BLOCK, block = GetBlockIdx() % t.usedCoreNum, m = block % across, n = block / across;
  GlobalTensor<float> as, bs, cs, biases;
  as.SetGlobalBuffer((__gm__ float*)a + m * SIZE * BLOCK);
  bs.SetGlobalBuffer((__gm__ float*)b + n * BLOCK);
  cs.SetGlobalBuffer((__gm__ float*)c + m * SIZE * BLOCK + n * BLOCK);
  biases.SetGlobalBuffer((__gm__ float*)bias + n * BLOCK);
  TPipe pipe;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(out, 2, BLOCK * BLOCK * sizeof(float));
  Matmul<In, In, Out, In> mm;
  REGIST_MATMUL_OBJ(&pipe, workspace, mm, &t);
  mm.SetTensorA(as);
  mm.SetTensorB(bs);
  mm.SetBias(biases);
  while (mm.Iterate()) {
    LocalTensor<float> x = out.AllocTensor<float>();
    mm.GetTensorC(x, false, true);
    LeakyRelu(x, x, 0.01f, BLOCK * BLOCK);
    out.EnQue(x);
    x = out.DeQue<float>();
    DataCopy(cs, x, DataCopyParams(BLOCK, BLOCK * sizeof(float) / 32, 0, (SIZE - BLOCK) * sizeof(float) / 32));
    out.FreeTensor(x);
  }
  mm.End();
}
