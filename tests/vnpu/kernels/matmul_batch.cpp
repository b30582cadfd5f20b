// Products of batches on cube cores alone: every order of the axes, several types, both directions of both matrices.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using AscendC::GlobalTensor;
using AscendC::MatmulConfig;
using AscendC::MatmulType;
using AscendC::TPosition;

struct BatchCase {
  uint32_t turn_a, turn_b, bias, count_a, count_b, stride_a, stride_b, atomic, in_sequence, partial;
  uint32_t calls, step_a, step_b, step_c, step_bias;  // elements from call to call
};

constexpr MatmulConfig less = AscendC::GetNormalConfig(),
                       large = AscendC::GetNormalConfig(false, false, false, BatchMode::BATCH_LARGE_THAN_L1),
                       single = AscendC::GetNormalConfig(false, false, false, BatchMode::SINGLE_LARGE_THAN_L1),
                       shared_bias = AscendC::GetMMConfig<MatmulConfigMode::CONFIG_NORM>(
                           AscendC::MatmulBatchParams{false, BatchMode::BATCH_LESS_THAN_L1, false});

template <typename T, typename C, typename Bias, LayoutMode in, LayoutMode out, const auto& config, CubeFormat lies,
          CubeFormat leaves>
__aicore__ inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, const TCubeTiling& t,
                                const BatchCase& p) {
  GlobalTensor<T> left, right;
  GlobalTensor<C> result;
  GlobalTensor<Bias> row;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(b));
  row.SetGlobalBuffer(reinterpret_cast<__gm__ Bias*>(bias));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ C*>(c));
  AscendC::TPipe pipe;
  AscendC::Matmul<MatmulType<TPosition::GM, lies, T, true, in>, MatmulType<TPosition::GM, lies, T, true, in>,
                  MatmulType<TPosition::GM, leaves, C, false, out>, MatmulType<TPosition::GM, CubeFormat::ND, Bias>,
                  config>
      mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  for (uint32_t i = 0; i < p.calls; i++) {
    mm.SetTensorA(left[i * p.step_a], p.turn_a);
    mm.SetTensorB(right[i * p.step_b], p.turn_b);
    if (p.bias) mm.SetBias(row[i * p.step_bias]);
    mm.SetBatchNum(p.count_a, p.count_b);
    mm.IterateBatch(result[i * p.step_c], p.partial && i > 0, p.atomic, p.in_sequence, p.stride_a, p.stride_b);
  }
  mm.End();
}

#define KERNEL(NAME, T, C, BIAS, IN, OUT, CONFIG, LIES, LEAVES)                                                        \
  extern "C" __global__ __cube__ void NAME(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, TCubeTiling t,               \
                                           BatchCase p) {                                                              \
    multiply<T, C, BIAS, LayoutMode::IN, LayoutMode::OUT, CONFIG, CubeFormat::LIES, CubeFormat::LEAVES>(a, b, bias, c, \
                                                                                                        t, p);         \
  }
KERNEL(float16_BSNGD_BSNGD, half, float, float, BSNGD, BSNGD, less, ND, ND)
KERNEL(float16_BSNGD_BNGS1S2, half, float, float, BSNGD, BNGS1S2, less, ND, ND)
KERNEL(float16_SBNGD_SBNGD, half, float, float, SBNGD, SBNGD, less, ND, ND)
KERNEL(float16_SBNGD_BNGS1S2, half, half, half, SBNGD, BNGS1S2, less, ND, ND)
KERNEL(float16_BNGS1S2_BNGS1S2, half, float, float, BNGS1S2, BNGS1S2, less, ND, ND)
KERNEL(float16_BNGS1S2_SBNGD, half, float, float, BNGS1S2, SBNGD, less, ND, ND)
KERNEL(float16_NORMAL_NORMAL, half, float, float, NORMAL, NORMAL, less, ND, ND)
KERNEL(float16_large, half, float, float, NORMAL, NORMAL, large, ND, ND)
KERNEL(float16_single, half, float, float, NORMAL, NORMAL, single, ND, ND)
KERNEL(float16_shared, half, float, float, NORMAL, NORMAL, shared_bias, ND, ND)
KERNEL(float16_tiles, half, float, float, NORMAL, NORMAL, less, NZ, ND)
KERNEL(float16_to_tiles, half, half, float, NORMAL, NORMAL, less, ND, NZ)
KERNEL(float16_aligned, half, half, float, BSNGD, BSNGD, less, ND, ND_ALIGN)
KERNEL(float32_NORMAL_NORMAL, float, float, float, NORMAL, NORMAL, less, ND, ND)
KERNEL(float32_BSNGD_SBNGD, float, float, float, BSNGD, SBNGD, less, ND, ND)
KERNEL(bfloat16_NORMAL_NORMAL, bfloat16_t, bfloat16_t, float, NORMAL, NORMAL, less, ND, ND)
KERNEL(bfloat16_SBNGD_BSNGD, bfloat16_t, float, float, SBNGD, BSNGD, less, ND, ND)
KERNEL(int8_NORMAL_NORMAL, int8_t, int32_t, int32_t, NORMAL, NORMAL, less, ND, ND)
KERNEL(int8_BSNGD_BSNGD, int8_t, int32_t, int32_t, BSNGD, BSNGD, less, ND, ND)
