// C by the kernel's own function (MatmulCallBackFunc, DataCopyOut).
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

using Left = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Right = MatmulType<TPosition::GM, CubeFormat::ND, half, true>;
using Rows = MatmulType<TPosition::GM, CubeFormat::ND, float>;
using Tiles = MatmulType<TPosition::GM, CubeFormat::NZ, float>;

// `data`: elements that are left free before C. `tiling`: negative sums become 0.
__aicore__ inline void rows_out(const __gm__ void* gm, const LocalTensor<int8_t>& block, const void* params,
                                const uint64_t tiling, const uint64_t data) {
  const auto* p = static_cast<const DataCopyOutParams*>(params);
  const auto rows = static_cast<uint16_t>(p->burstLen / 2);
  FixpipeParamsV220 f(p->oriNSize, rows, CeilDiv(rows, 16) * 16, p->dstStride, tiling != 0);
  if (p->enUnitFlag) f.unitFlag = 3;
  GlobalTensor<float> c;
  c.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(const_cast<__gm__ void*>(gm)) + data);
  Fixpipe<float, float, CFG_ROW_MAJOR>(c, block.ReinterpretCast<float>(), f);
}
__aicore__ inline void tiles_out(const __gm__ void* gm, const LocalTensor<int8_t>& block, const void* params,
                                 const uint64_t, const uint64_t data) {
  const auto* p = static_cast<const DataCopyOutParams*>(params);
  FixpipeParams<float> f(p->cBurstNum, p->burstLen, p->srcStride, p->dstStride - p->burstLen);
  if (p->enUnitFlag) f.unitFlag = 3;
  GlobalTensor<float> c;
  c.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(const_cast<__gm__ void*>(gm)) + data);
  Fixpipe(c, block.ReinterpretCast<float>(), f);
}

constexpr MatmulConfig by_unit_flags() {
  MatmulConfig c = CFG_MDL;
  c.enUnitFlag = true;
  return c;
}
constexpr MatmulConfig UNIT = by_unit_flags();

template <typename C, const auto& config, auto function, bool one_by_one = false>
__aicore__ inline void own(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t relu, uint32_t ahead) {
  TPipe pipe;
  Matmul<Left, Right, C, Rows, config, MatmulCallBackFunc<function, nullptr, nullptr>> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  GlobalTensor<half> left, right;
  GlobalTensor<float> result;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(out));
  mm.SetUserDefInfo(relu);
  mm.SetSelfDefineData(uint64_t(ahead));
  mm.SetTensorA(left);
  mm.SetTensorB(right, true);
  if constexpr (one_by_one)
    while (mm.Iterate()) mm.GetTensorC(result, 1);  // adds to what is there
  else
    mm.IterateAll(result);
  mm.End();
}
extern "C" __global__ __mix__(1, 1) void own_rows(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t relu,
                                                  uint32_t ahead) {
  own<Rows, CFG_NORM, rows_out>(a, b, out, t, relu, ahead);
}
extern "C" __global__ __mix__(1, 1) void own_rows_mdl(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t relu,
                                                      uint32_t ahead) {
  own<Rows, CFG_MDL, rows_out>(a, b, out, t, relu, ahead);
}
extern "C" __global__ __mix__(1, 1) void own_rows_unit(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t relu,
                                                       uint32_t ahead) {
  own<Rows, UNIT, rows_out>(a, b, out, t, relu, ahead);
}
extern "C" __global__ __mix__(1, 1) void own_rows_added(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t relu,
                                                        uint32_t ahead) {
  own<Rows, CFG_NORM, rows_out, true>(a, b, out, t, relu, ahead);
}
extern "C" __global__ __mix__(1, 1) void own_tiles(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t, uint32_t relu,
                                                   uint32_t ahead) {
  own<Tiles, CFG_NORM, tiles_out>(a, b, out, t, relu, ahead);
}
