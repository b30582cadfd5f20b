// Vector cores ask the cube core of their group for batches: to global memory, at once or waited for later, to the
// Unified Buffer, and several batches by one call.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

struct MixedBatch {
  uint32_t way, count_a, count_b, loops, step_a, step_b, step_c, bytes;
};

constexpr MatmulConfig several = GetMMConfig<MatmulConfigMode::CONFIG_NORM>(
    MatmulBatchParams{true, BatchMode::BATCH_LESS_THAN_L1, true});

// Each vector core of one group multiplies its own half of A and C; they share B.
template <LayoutMode in, LayoutMode out, TPosition position, CubeFormat leaves = CubeFormat::ND>
__aicore__ inline void products(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace, const TCubeTiling& t,
                                const MixedBatch& p) {
  TPipe pipe;
  Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half, false, in>,
         MatmulType<TPosition::GM, CubeFormat::ND, half, true, in>, MatmulType<position, leaves, float, false, out>,
         MatmulType<TPosition::GM, CubeFormat::ND, float>, several>
      mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  const uint32_t core = GetBlockIdx(), all = p.step_c * p.loops;
  GlobalTensor<half> left, right;
  GlobalTensor<float> result, ahead;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a) + core * p.step_a * p.loops);
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(c) + core * all);
  ahead.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace) + core * all, all);
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, p.bytes);
  LocalTensor<float> block = buffer.Get<float>();
  const auto finish = [&](const GlobalTensor<float>& to) {
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID3);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID3);
    DataCopy(to, block, p.bytes / sizeof(float));
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID3);
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID3);
  };
  mm.SetTensorA(left);
  mm.SetTensorB(right, true);
  mm.SetWorkspace(ahead);
  if (p.way >= 3) {
    if (p.way == 3) mm.IterateNBatch(p.loops, p.count_a, p.count_b, false);
    if (p.way == 4) {
      mm.template IterateNBatch<false, true>(p.loops, p.count_a, p.count_b, false);
      mm.WaitIterateBatch();
    }
    if (p.way >= 5) mm.template IterateNBatch<false>(p.loops, p.count_a, p.count_b, false);
    for (uint32_t i = 0; i < p.loops; i++) {
      if (p.way == 6)
        mm.template GetBatchTensorC<false>(block, p.count_a, p.count_b);
      else
        DataCopy(block, p.way == 5 ? mm.template GetBatchC<false>(p.count_a, p.count_b) : ahead[i * p.step_c],
                 p.bytes / sizeof(float));
      finish(result[i * p.step_c]);
    }
    return;
  }
  for (uint32_t i = 0; i < p.loops; i++) {
    mm.SetTensorA(left[i * p.step_a]);
    mm.SetTensorB(right[i * p.step_b], true);
    if (p.way == 0) mm.IterateBatch(result[i * p.step_c], p.count_a, p.count_b, false);
    if (p.way == 1) {
      mm.template IterateBatch<false, true>(result[i * p.step_c], p.count_a, p.count_b, false);
      mm.WaitIterateBatch();
    }
    if (p.way == 2) {
      mm.IterateBatch(block, p.count_a, p.count_b, false);
      finish(result[i * p.step_c]);
    }
  }
  mm.End();
}

#define KERNEL(NAME, ...)                                                                                          \
  extern "C" __global__ __mix__(1, 2) void NAME(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace, TCubeTiling t, \
                                                MixedBatch p) {                                                    \
    products<__VA_ARGS__>(a, b, c, workspace, t, p);                                                               \
  }
KERNEL(rows, LayoutMode::BSNGD, LayoutMode::BSNGD, TPosition::GM)
KERNEL(matrices, LayoutMode::BNGS1S2, LayoutMode::BNGS1S2, TPosition::GM)
KERNEL(to_vector_core, LayoutMode::BNGS1S2, LayoutMode::BNGS1S2, TPosition::VECIN)
