// What the types of a Matmul say: callbacks, policies, configurations and tilings, and what of them isn't covered.
#pragma once
#include "matmul_config.h"
#include "std_names.h"
#include "tensor.h"
#include "vnpu/matmul.h"

namespace AscendC::matmul_api {

// Functions of the kernel that bring blocks of A and B to L1, and of C from L0C, in place of Matmul's own.
// Limit of MatmulCallBackFunc: not for batches; DataCopyOut without quantization.
template <auto DataCopyOut = nullptr, auto CopyA1 = nullptr, auto CopyB1 = nullptr>
struct MatmulCallBackFunc {
  static constexpr auto data_copy_out = DataCopyOut;
  static constexpr auto copy_a1 = CopyA1;
  static constexpr auto copy_b1 = CopyB1;
};

// What a kernel's own DataCopyOut gets of a block, with the names of the AscendC reference (MatmulCallBackFunc).
struct DataCopyOutParams {
  DataCopyOutParams() = default;
  DataCopyOutParams(uint16_t count, uint16_t len, uint16_t srcStrideIn, uint32_t dstStrideIn, uint16_t nSize,
                    bool unitFlag, int curMPos, int curNPos)
      : cBurstNum(count),
        burstLen(len),
        srcStride(srcStrideIn),
        dstStride(dstStrideIn),
        oriNSize(nSize),
        enUnitFlag(unitFlag),
        curM(curMPos),
        curN(curNPos) {}
  uint8_t quantMode = 0;
  uint16_t cBurstNum = 0, burstLen = 0, srcStride = 0;
  uint32_t dstStride = 0;
  uint16_t oriNSize = 0;
  bool enUnitFlag = false;
  uint64_t quantScalar = 0;
  int curM = 0, curN = 0;
  uint64_t cbufWorkspaceAddr = 0;
};

struct MatrixOffset {
  int32_t offset, row, col, height, width;
};

namespace policies {

// Which blocks of C are computed, and how they get there. Triangles leave out the blocks on the other side.
template <const auto& CFG = CFG_NORM, typename... Types>
struct MatmulPolicy {
  static constexpr int triangle = 0;
};
template <const auto& CFG = CFG_NORM, typename... Types>
struct TrianUpperMatmulPolicy {
  static constexpr int triangle = 1;
};
template <const auto& CFG = CFG_NORM, typename... Types>
struct TrianLowerMatmulPolicy {
  static constexpr int triangle = -1;
};
// It copies as the usual policy does.
template <const auto& CFG = CFG_NORM, typename... Types>
struct NBuffer33MatmulPolicy {
  static constexpr int triangle = 0;
};

}  // namespace policies

namespace matmul_inner {

template <typename...>
constexpr bool matmul_covers = false;

constexpr const MatmulConfig& config_of(const MatmulConfig& c) { return c; }
constexpr const MatmulConfig& config_of(const MatmulApiStaticTiling& t) { return t.cfg; }
template <typename T>
constexpr bool is_constant(const T&) {
  return std::is_same_v<T, MatmulApiStaticTiling>;
}

constexpr vnpu::MatrixLayout layout_of(CubeFormat f) {
  return f == CubeFormat::NZ         ? vnpu::MatrixLayout::Tiles
         : f == CubeFormat::ND_ALIGN ? vnpu::MatrixLayout::AlignedRows
                                     : vnpu::MatrixLayout::Rows;
}
constexpr bool in_unified_buffer(TPosition p) {
  return p == TPosition::VECIN || p == TPosition::VECOUT || p == TPosition::VECCALC;
}
template <typename M, typename = void>
constexpr bool is_sparse = false;
template <typename M>
constexpr bool is_sparse<M, std::void_t<decltype(M::indexPosition)>> = true;
// A sparse matrix is B, as the reference has it.
template <class A, class B>
constexpr bool covers_sparse(const MatmulConfig& c) {
  if constexpr (is_sparse<B>)
    return !is_sparse<A> && std::is_same_v<typename B::T, int8_t> && B::isTrans && B::pos == TPosition::GM &&
           B::indexPosition == TPosition::GM && B::layout == LayoutMode::NONE && !B::ibShare && c.doMultiDataLoad;
  else
    return !is_sparse<A>;
}
// asc-devkit, PhyPosIsL1.
constexpr bool in_l1(TPosition p) { return p == TPosition::TSCM || p == TPosition::A1 || p == TPosition::B1; }
constexpr bool may_be_local(TPosition p) { return in_l1(p) || in_unified_buffer(p); }
constexpr bool covers_format(CubeFormat f, bool result) {
  return f == CubeFormat::ND || f == CubeFormat::NZ || (result ? f == CubeFormat::ND_ALIGN : f == CubeFormat::VECTOR);
}

// What isn't covered of a configuration, by name; null: nothing.
// enVecND2NZ changes nothing on architecture 2201: CANN's Matmul asks for it only where copies go through UB
// (MatmulFeatureTrait::IsNeedUB).
constexpr const char* refused(const MatmulConfig& c) {
  return c.intraBlockPartSum                       ? "intraBlockPartSum is not covered"
         : c.isPartialOutput && !c.doMultiDataLoad ? "isPartialOutput is for MDL (AscendC reference)"
         : c.isCO1Shared                           ? "isCO1Shared does not exist on architecture 2201"
         : c.enableRelu                            ? "enableRelu does not exist on architecture 2201"
                                                   : nullptr;
}

constexpr vnpu::BatchLayout batches_of(LayoutMode mode) {
  return mode == LayoutMode::BSNGD     ? vnpu::BatchLayout::BSNGD
         : mode == LayoutMode::SBNGD   ? vnpu::BatchLayout::SBNGD
         : mode == LayoutMode::BNGS1S2 ? vnpu::BatchLayout::BNGS1S2
         : mode == LayoutMode::NORMAL  ? vnpu::BatchLayout::Normal
                                       : vnpu::BatchLayout::None;
}
constexpr bool by_lines(LayoutMode mode) { return mode == LayoutMode::BSNGD || mode == LayoutMode::SBNGD; }
constexpr vnpu::BatchRoom room_of(BatchMode mode) {
  return mode == BatchMode::BATCH_LARGE_THAN_L1    ? vnpu::BatchRoom::Some
         : mode == BatchMode::SINGLE_LARGE_THAN_L1 ? vnpu::BatchRoom::Blocks
                                                   : vnpu::BatchRoom::All;
}
ASCENDC_INLINE vnpu::MatmulBatches batches_of(const TCubeTiling& t) {
  vnpu::MatmulBatches x;
  x.a = {vnpu::BatchLayout::None, t.ALayoutInfoB, t.ALayoutInfoS, t.ALayoutInfoN, t.ALayoutInfoG, t.ALayoutInfoD};
  x.b = {vnpu::BatchLayout::None, t.BLayoutInfoB, t.BLayoutInfoS, t.BLayoutInfoN, t.BLayoutInfoG, t.BLayoutInfoD};
  x.c = {vnpu::BatchLayout::None, t.CLayoutInfoB, t.CLayoutInfoS1, t.CLayoutInfoN, t.CLayoutInfoG, t.CLayoutInfoS2};
  x.most = t.BatchNum;
  return x;
}
// What isn't covered of an object whose A and B are batches, by name; null: nothing.
template <class A, class B, class C>
constexpr const char* refused_batch(const MatmulConfig& c) {
  return A::layout != B::layout                ? "A and B have to have one LayoutMode (AscendC reference, IterateBatch)"
         : C::layout == LayoutMode::NONE       ? "C has to have a LayoutMode, too"
         : c.doMultiDataLoad || c.doSpecialMDL ? "batches are for Norm configurations (AscendC reference)"
         : std::is_same_v<typename A::T, int4b_t> ? "batches of int4b_t do not exist (AscendC reference)"
         : A::pos == TPosition::VECOUT || B::pos == TPosition::VECOUT ? "A and B of batches in VECOUT are not covered"
         : by_lines(A::layout) && (A::format == CubeFormat::NZ || B::format == CubeFormat::NZ)
             ? "BSNGD and SBNGD are for ND alone (AscendC reference)"
         : A::layout != LayoutMode::NORMAL && room_of(c.batchMode) != vnpu::BatchRoom::All
             ? "a BatchMode other than BATCH_LESS_THAN_L1 is for LayoutMode::NORMAL (AscendC reference)"
         : c.batchMode == BatchMode::SINGLE_LARGE_THAN_L1 && !c.isBiasBatch
             ? "isBiasBatch = false is not for SINGLE_LARGE_THAN_L1 (AscendC reference)"
             : nullptr;
}

// Of BatchOutMode::MULTI_BATCH and DYNAMIC, `at_once` matrices of C wait side by side in L0C and leave together: each
// has to be one base block (asc-devkit, batch_scheduler_base.h). Here they leave one by one, to the same places.
ASCENDC_INLINE void check_gathered(BatchOutMode mode, const vnpu::MatmulCut& cut, int32_t at_once) {
  if (mode == BatchOutMode::SINGLE_BATCH || (mode == BatchOutMode::DYNAMIC && at_once <= 1)) return;
  constexpr int64_t l0c = 131072;
  if (cut.m > cut.base_m || cut.n > cut.base_n)
    vnpu::misuse("Matmul::IterateBatch",
                 "with BatchOutMode::MULTI_BATCH, or DYNAMIC and SetNBatchOutNum above 1, a matrix of C has to be one "
                 "base block: what lies beyond baseM x baseN is not computed, or goes to another matrix's place");
  if (at_once < 1 || int64_t(at_once) * cut.base_m * cut.base_n * 4 * (cut.buffers_c > 1 ? 2 : 1) > l0c)
    vnpu::misuse("Matmul::SetNBatchOutNum", "as many blocks of baseM x baseN as leave at once have to fit in L0C");
}

ASCENDC_INLINE vnpu::MatmulCut cut_of(const TCubeTiling& t) {
  vnpu::MatmulCut c;
  c.m = t.singleCoreM;
  c.n = t.singleCoreN;
  c.k = t.singleCoreK;
  c.base_m = t.baseM;
  c.base_n = t.baseN;
  c.base_k = t.baseK;
  c.depth_a = t.depthA1;
  c.depth_b = t.depthB1;
  c.step_m = t.stepM;
  c.step_n = t.stepN;
  c.step_ka = t.stepKa;
  c.step_kb = t.stepKb;
  c.order = t.iterateOrder;
  c.buffers_a = t.dbL0A;
  c.buffers_b = t.dbL0B;
  c.buffers_c = t.dbL0C;
  c.has_bias = t.isBias != 0;
  return c;
}

// A tiling whose constants take the place of what the tiling data says.
#define VNPU_CONSTANT(name) \
  if (constant.name != -1) t.name = constant.name;
ASCENDC_INLINE TCubeTiling tiling_of(const MatmulApiStaticTiling& constant, const TCubeTiling* data) {
  TCubeTiling t = data != nullptr ? *data : TCubeTiling{};
  VNPU_CUBE_TILING_FIELDS(VNPU_CONSTANT)
  return t;
}
#undef VNPU_CONSTANT
ASCENDC_INLINE TCubeTiling tiling_of(const MatmulConfig&, const TCubeTiling* data) {
  if (data == nullptr) vnpu::misuse("Matmul::Init", "the tiling is null");
  return *data;
}

// A kernel's own copy, called as the machine calls it.
template <auto function>
struct OwnCopy {
  static void call(void* to, uint64_t bytes, const void* from, int32_t row, int32_t column, int32_t rows,
                   int32_t columns, uint64_t tiling, uint64_t data) {
    LocalTensor<int8_t> tensor;
    tensor.Bind(static_cast<int8_t*>(to), static_cast<uint32_t>(bytes), TPosition::A1, nullptr);
    function(tensor, from, row, column, rows, columns, tiling, data);
  }
};
template <auto function>
constexpr vnpu::MatmulCopyIn own_copy() {
  if constexpr (std::is_same_v<std::remove_cv_t<decltype(function)>, std::nullptr_t>)
    return nullptr;
  else
    return &OwnCopy<function>::call;
}
template <auto function>
struct OwnCopyOut {
  static void call(void* to, const void* from, uint64_t bytes, const vnpu::MatmulBlockOut& block, uint64_t tiling,
                   uint64_t data) {
    LocalTensor<int8_t> tensor;
    tensor.Bind(static_cast<int8_t*>(const_cast<void*>(from)), static_cast<uint32_t>(bytes), TPosition::CO1, nullptr);
    const DataCopyOutParams params(block.column_blocks, block.burst_blocks, 0, block.stride, block.columns,
                                   block.unit_flag, block.row, block.column);
    function(to, tensor, &params, tiling, data);
  }
};
template <auto function>
constexpr vnpu::MatmulCopyOut own_copy_out() {
  if constexpr (std::is_same_v<std::remove_cv_t<decltype(function)>, std::nullptr_t>)
    return nullptr;
  else
    return &OwnCopyOut<function>::call;
}

}  // namespace matmul_inner

}  // namespace AscendC::matmul_api
