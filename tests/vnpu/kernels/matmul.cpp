// Matmul objects of several types: blocks and packets, both directions of both matrices, bias, every way out.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using AscendC::GlobalTensor;
using AscendC::MatmulConfig;
using AscendC::MatmulType;
using AscendC::TPosition;

struct MatmulCase {
  uint32_t turn_a, turn_b, bias, by_block, in_sequence, atomic, quant;
  uint32_t kc;    // columns of C, when they are not B's
  uint32_t hf32;  // 1: rounds floats first, 2: halves towards zero
  uint64_t word;
};

constexpr MatmulConfig blocks = AscendC::GetNormalConfig(), packets = AscendC::GetMDLConfig(),
                       packets_by_flags = AscendC::GetMDLConfig(false, false, 0, true, false, false, true),
                       split = AscendC::GetMMConfig<MatmulConfigMode::CONFIG_NORM>(
                           AscendC::MatmulFuncParams{false, false, false, false, 0, IterateOrder::UNDEF,
                                                     ScheduleType::INNER_PRODUCT, true, false, false, false, true});

constexpr MatmulConfig partial = AscendC::GetMMConfig<MatmulConfigMode::CONFIG_MDL>(AscendC::MatmulFuncParams{
    false, false, false, false, 0, IterateOrder::UNDEF, ScheduleType::INNER_PRODUCT, true, true, true});
constexpr MatmulConfig dual = AscendC::GetNormalConfig(false, false, false, BatchMode::BATCH_LESS_THAN_L1, true,
                                                       IterateOrder::UNDEF, ScheduleType::INNER_PRODUCT, true, true);
constexpr MatmulConfig basic = AscendC::GetBasicConfig(32, 32, 32), special = AscendC::GetSpecialMDLConfig(),
                       shared = AscendC::GetIBShareNormConfig();

template <typename T, typename C, typename Bias, const auto& config, CubeFormat in, CubeFormat out>
__aicore__ inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR words, GM_ADDR c, const TCubeTiling& t,
                                const MatmulCase& p) {
  GlobalTensor<T> left, right;
  GlobalTensor<C> result;
  GlobalTensor<Bias> row;
  GlobalTensor<uint64_t> scales;
  const int32_t down = (t.M + t.singleCoreM - 1) / t.singleCoreM, across = (t.N + t.singleCoreN - 1) / t.singleCoreN;
  const auto index = static_cast<int32_t>(AscendC::GetBlockIdx());
  const int32_t m = index % down * t.singleCoreM, n = index / down % across * t.singleCoreN;
  const int32_t k = index / (down * across) * t.singleCoreK, all_k = t.Ka;
  const bool tiles = in == CubeFormat::NZ;
  constexpr bool halves = std::is_same_v<T, AscendC::int4b_t>;  // two elements in a byte
  constexpr int32_t c0 = halves ? 64 : 32 / sizeof(T);
  const auto up = [](int32_t x, int32_t to) { return (x + to - 1) / to * to; };
  // Where this core's part begins; tiles: columns of c0 elements, all rows each.
  const int32_t from_a = tiles ? (p.turn_a ? m / c0 * up(t.Ka, 16) * c0 + k * c0 : k / c0 * up(t.M, 16) * c0 + m * c0)
                               : (p.turn_a ? k * t.M + m : m * t.Ka + k);
  const int32_t from_b = tiles ? (p.turn_b ? k / c0 * up(t.N, 16) * c0 + n * c0 : n / c0 * up(t.Kb, 16) * c0 + k * c0)
                               : (p.turn_b ? n * t.Kb + k : k * t.N + n);
  left.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(a) + from_a / (halves ? 2 : 1));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(b) + from_b / (halves ? 2 : 1));
  row.SetGlobalBuffer(reinterpret_cast<__gm__ Bias*>(bias) + n);
  scales.SetGlobalBuffer(reinterpret_cast<__gm__ uint64_t*>(words) + n);
  constexpr int32_t width = sizeof(C) == 1 ? 32 : config.isEnableChannelSplit ? 8 : 16;
  int32_t pitch = p.kc != 0 ? static_cast<int32_t>(p.kc) : t.N;
  if (out == CubeFormat::ND_ALIGN) pitch = up(pitch, 32 / sizeof(C));
  const int32_t to = out == CubeFormat::NZ ? n / width * up(t.M, 16) * width + m * width : m * pitch + n;
  result.SetGlobalBuffer(reinterpret_cast<__gm__ C*>(c) + to);

  AscendC::TPipe pipe;
  AscendC::Matmul<MatmulType<TPosition::GM, in, T, !halves>, MatmulType<TPosition::GM, in, T, true>,
                  MatmulType<TPosition::GM, out, C>, MatmulType<TPosition::GM, CubeFormat::ND, Bias>, config>
      mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  if (p.kc != 0) mm.SetOrgShape(t.M, t.N, t.Ka, t.Kb, p.kc);
  mm.SetSingleShape(min(t.singleCoreM, t.M - m), min(t.singleCoreN, t.N - n), min(t.singleCoreK, all_k - k));
  if (p.quant == 1) mm.SetQuantScalar(p.word);
  if (p.quant == 2) mm.SetQuantVector(scales);
  mm.SetTensorA(left, p.turn_a);
  mm.SetTensorB(right, p.turn_b);
  mm.SetHF32(p.hf32 > 0, p.hf32 == 2);
  mm.SetSubBlockIdx(mm.GetSubBlockIdx());
  if (p.bias) mm.SetBias(row);
  if (p.bias == 2) mm.ClearBias();
  if (p.bias == 3) mm.DisableBias();
  if constexpr (!config.isPartialOutput)
    if (p.by_block == 0) mm.IterateAll(result, p.atomic);
  if (p.by_block != 0) {
    int32_t done = 0;
    while (mm.Iterate()) {
      if (p.in_sequence)
        mm.GetTensorC(result[done], p.atomic, true);
      else
        mm.GetTensorC(result, p.atomic);
      done += t.baseM * t.baseN;
    }
  }
  mm.End();
}

#define KERNEL(NAME, T, C, BIAS, CONFIG, IN, OUT)                                                        \
  extern "C" __global__ __cube__ void NAME(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR words, GM_ADDR c, \
                                           TCubeTiling t, MatmulCase p) {                                \
    multiply<T, C, BIAS, CONFIG, CubeFormat::IN, CubeFormat::OUT>(a, b, bias, words, c, t, p);           \
  }
KERNEL(half_blocks, half, float, float, blocks, ND, ND)
KERNEL(half_packets, half, float, float, packets, ND, ND)
KERNEL(half_flags, half, half, half, packets_by_flags, ND, ND)
KERNEL(half_aligned, half, half, float, blocks, ND, ND_ALIGN)
KERNEL(half_tiles, half, half, float, blocks, NZ, NZ)
KERNEL(half_split, half, float, float, split, ND, NZ)
KERNEL(half_int8, half, int8_t, float, packets, ND, ND)
KERNEL(bfloat16_blocks, bfloat16_t, bfloat16_t, float, blocks, ND, ND)
KERNEL(bfloat16_packets, bfloat16_t, float, float, packets, ND, ND)
KERNEL(float_blocks, float, float, float, blocks, ND, ND)
KERNEL(float_packets, float, float, float, packets, ND, ND)
KERNEL(int8_blocks, int8_t, int32_t, int32_t, blocks, ND, ND)
KERNEL(int8_packets, int8_t, int32_t, int32_t, packets, ND, ND)
KERNEL(int8_half, int8_t, half, int32_t, packets, ND, ND)
KERNEL(int4_blocks, AscendC::int4b_t, int32_t, int32_t, blocks, ND, ND)
KERNEL(int4_packets, AscendC::int4b_t, int32_t, int32_t, packets, ND, ND)
KERNEL(int4_flags, AscendC::int4b_t, int32_t, int32_t, packets_by_flags, ND, ND)
KERNEL(int4_tiles, AscendC::int4b_t, int32_t, int32_t, blocks, NZ, ND)
KERNEL(int4_half, AscendC::int4b_t, half, int32_t, packets, ND, ND)
KERNEL(half_basic, half, float, float, basic, ND, ND)
KERNEL(half_special, half, float, float, special, ND, ND)
KERNEL(half_partial, half, float, float, partial, ND, ND)
KERNEL(half_dual, half, float, float, dual, ND, ND)
KERNEL(half_shared, half, float, float, shared, ND, ND)

// A's rows in the order that a list says: the kernel copies its blocks itself. `pitch`: elements from row to row.
__aicore__ inline void copy_a(const AscendC::LocalTensor<int8_t>& to, const __gm__ void* from, int row, int column,
                              int rows, int columns, const uint64_t pitch, const uint64_t order) {
  GlobalTensor<half> a;
  a.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(const_cast<__gm__ void*>(from)));
  GlobalTensor<uint32_t> places;
  places.SetGlobalBuffer(reinterpret_cast<__gm__ uint32_t*>(order));
  AscendC::LocalTensor<half> tiles = to.ReinterpretCast<half>();
  const int high = (rows + 15) / 16 * 16;
  for (int r = 0; r < rows; r++)
    DataCopy(tiles[r * 16], a[places.GetValue(row * 32 + r) * pitch + column * 32],
             AscendC::Nd2NzParams(1, 1, columns, 0, static_cast<uint16_t>(pitch), high, 1, 0));
}

extern "C" __global__ __cube__ void half_reordered(GM_ADDR a, GM_ADDR b, GM_ADDR order, GM_ADDR c, TCubeTiling t) {
  GlobalTensor<half> left, right;
  GlobalTensor<float> result;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(c));
  AscendC::TPipe pipe;
  using In = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using Out = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  AscendC::Matmul<In, In, Out, Out, CFG_NORM, AscendC::MatmulCallBackFunc<nullptr, copy_a, nullptr>> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  mm.SetUserDefInfo(t.Ka);
  mm.SetSelfDefineData(reinterpret_cast<uint64_t>(order));
  mm.SetTensorA(left);
  mm.SetTensorB(right);
  mm.IterateAll(result);
  mm.End();
}
