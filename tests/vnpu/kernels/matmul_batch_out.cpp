// Batches whose matrices of C may leave L0C several at once (BatchOutMode), on cube cores alone.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using AscendC::GlobalTensor;
using AscendC::MatmulConfig;
using AscendC::MatmulType;
using AscendC::TPosition;

struct Batch {
  uint32_t count, at_once, bias;
};

constexpr MatmulBatchParams each_its_bias{false, BatchMode::BATCH_LESS_THAN_L1, true, BatchOutMode::DYNAMIC},
    one_bias{false, BatchMode::BATCH_LESS_THAN_L1, false, BatchOutMode::DYNAMIC};
constexpr MatmulConfig dynamic = GetMMConfig<MatmulConfigMode::CONFIG_NORM>(each_its_bias),
                       dynamic_shared = GetMMConfig<MatmulConfigMode::CONFIG_NORM>(one_bias),
                       multi = GetNormalConfig(false, false, false, BatchMode::BATCH_LESS_THAN_L1, true,
                                               IterateOrder::ORDER_M, ScheduleType::INNER_PRODUCT, true, false,
                                               BatchOutMode::MULTI_BATCH);

template <const auto& config>
__aicore__ inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, const TCubeTiling& t, const Batch& p) {
  GlobalTensor<half> left, right;
  GlobalTensor<float> result, row;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  row.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(bias));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(c));
  AscendC::TPipe pipe;
  using Rows = MatmulType<TPosition::GM, CubeFormat::ND, half, false, LayoutMode::NORMAL>;
  using Out = MatmulType<TPosition::GM, CubeFormat::ND, float, false, LayoutMode::NORMAL>;
  AscendC::MatmulImpl<Rows, Rows, Out, MatmulType<TPosition::GM, CubeFormat::ND, float>, config> mm;
  mm.SetSubBlockIdx(0);
  mm.SetNBatchOutNum(p.at_once);
  mm.Init(&t, &pipe);
  mm.SetTensorA(left);
  mm.SetTensorB(right);
  if (p.bias) mm.SetBias(row);
  mm.SetBatchNum(p.count, p.count);
  mm.IterateBatch(result, false, 0, false);
  mm.End();
}

#define KERNEL(NAME)                                                                                          \
  extern "C" __global__ __cube__ void of_##NAME(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, TCubeTiling t, \
                                                Batch p) {                                                    \
    multiply<NAME>(a, b, bias, c, t, p);                                                                      \
  }
KERNEL(dynamic)
KERNEL(dynamic_shared)
KERNEL(multi)
