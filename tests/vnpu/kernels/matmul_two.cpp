// Several Matmul objects of one kernel, used in turn: the second one multiplies what the first one has made. With
// ASCENDC_CUBE_ONLY cube cores multiply for themselves, otherwise the vector cores of a group ask.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

#ifdef ASCENDC_CUBE_ONLY
#define CORES __cube__
#else
#define CORES __mix__(1, 2)
#endif

constexpr MatmulConfig blocks = GetNormalConfig(), packets = GetMDLConfig();

// out = (a x b + bias) x d, `rows` rows at a time: each core has its own of a, of what is between and of out.
template <const auto& first, const auto& second>
__aicore__ inline void chain(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR d, GM_ADDR between, GM_ADDR out,
                             const TCubeTiling& t, const TCubeTiling& u) {
  using Halves = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using Floats = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  TPipe pipe;
  Matmul<Halves, Halves, Halves, Floats, first> mm;
  Matmul<Halves, Halves, Floats, Floats, second> nn;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t, nn, &u);
  const auto core = static_cast<int32_t>(GetBlockIdx());
  GlobalTensor<half> left, right, last, middle;
  GlobalTensor<float> row, result;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  last.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(d));
  row.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(bias));
  middle.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(between));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(out));
  for (int32_t m = core * t.singleCoreM; m < t.M; m += t.usedCoreNum * t.singleCoreM) {
    const int32_t rows = min(t.singleCoreM, t.M - m);
    mm.SetTail(rows, t.singleCoreN, t.singleCoreK);
    mm.SetTensorA(left[m * t.Ka]);
    mm.SetTensorB(right);
    mm.SetBias(row);
    mm.IterateAll(middle[m * t.N]);
    mm.End();
#ifdef ASCENDC_CUBE_ONLY
    const auto id = GetTPipePtr()->FetchEventID(HardEvent::FIX_MTE2);
    SetFlag<HardEvent::FIX_MTE2>(id);
    WaitFlag<HardEvent::FIX_MTE2>(id);
#endif
    nn.SetTail(rows, u.singleCoreN, u.singleCoreK);
    nn.SetTensorA(middle[m * t.N]);
    nn.SetTensorB(last);
    nn.IterateAll(result[m * u.N]);
    nn.End();
  }
}

#define KERNEL(NAME, FIRST, SECOND)                                                                                  \
  extern "C" __global__ CORES void NAME(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR d, GM_ADDR between, GM_ADDR out, \
                                        TCubeTiling t, TCubeTiling u) {                                              \
    chain<FIRST, SECOND>(a, b, bias, d, between, out, t, u);                                                         \
  }
KERNEL(blocks_blocks, blocks, blocks)
KERNEL(packets_blocks, packets, blocks)
